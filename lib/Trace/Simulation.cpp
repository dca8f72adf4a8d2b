//===- Simulation.cpp - a greedy simulator of traces ----------------------===//
#include "Simulation.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include <deque>
#include <functional>
#include <queue>

using namespace stage;

namespace {
struct Place {
  uint32_t rank;
  NodeIndex node;
};

using ReadyQueue = std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<NodeIndex>>;
enum class NodeState : uint8_t { Waiting, Ready, Issued, Done };

/// The resources of a rank that hold one node at a time.
enum Unit : unsigned { Compute, CpuCompute, Communication, NumUnits };

struct RankState {
  std::vector<uint32_t> numWaiting;
  std::vector<uint64_t> userBegin;
  std::vector<NodeIndex> users;
  std::vector<NodeState> states;
  ReadyQueue ready[NumUnits];
  NodeIndex inFlight[NumUnits] = {noNode, noNode, noNode};
  size_t numDone = 0;
};

/// Members issue the uses of a group in turn, one at a time, so all are at the same use or have just left it.
struct GroupState {
  uint32_t numArrived = 0;
  uint64_t numUses = 0;
  Place first = {};
};

struct ChannelState {
  std::deque<Place> sends;
  std::deque<Place> recvs;
};

class Simulator {
public:
  Simulator(const NodeTable &table, uint32_t numChannels, Timing timing, FaultReporter &faults)
      : table(table), timing(timing), faults(faults), ranks(table.ranks.size()), groups(table.groups.size()),
        channels(numChannels) {}

  bool run();

private:
  void prepare(uint32_t rank);
  void makeReady(uint32_t rank, NodeIndex node);
  void issue(uint32_t rank);
  void issueCollective(uint32_t rank, NodeIndex node);
  void match(ChannelState &channel);
  void finish(Place place);
  void endLater(Place place, bool isSlow) {
    if (isSlow)
      later.push_back(place);
    else
      now.push_back(place);
  }
  bool isSlowCommunication() const { return !timing.computeIsSlow; }

  void reportStall();
  std::optional<Place> getAwaited(Place place, std::string &why);
  NodeIndex findUnissued(uint32_t rank, std::function<bool(const NodeRecord &)> isWanted) const;

  const NodeRecord &getRecord(Place place) const { return table.ranks[place.rank].nodes[place.node]; }
  NodeState &getState(Place place) { return ranks[place.rank].states[place.node]; }

  const NodeTable &table;
  Timing timing;
  FaultReporter &faults;
  std::vector<RankState> ranks;
  std::vector<GroupState> groups;
  std::vector<ChannelState> channels;
  std::deque<Place> now;
  std::vector<Place> later;
  bool mismatched = false;
};
} // namespace

static Unit getUnit(const NodeRecord &node) {
  if (node.type == ChakraNodeType::CommSend || node.type == ChakraNodeType::CommColl)
    return Communication;
  return node.isCpuOp ? CpuCompute : Compute;
}

void Simulator::prepare(uint32_t rank) {
  const RankTable &trace = table.ranks[rank];
  RankState &state = ranks[rank];
  size_t numNodes = trace.nodes.size();
  state.states.resize(numNodes, NodeState::Waiting);
  state.numWaiting.resize(numNodes);
  state.userBegin.resize(numNodes + 1);
  for (NodeIndex dep : trace.deps)
    ++state.userBegin[dep + 1];
  for (size_t i = 0; i < numNodes; ++i)
    state.userBegin[i + 1] += state.userBegin[i];
  state.users.resize(trace.deps.size());
  std::vector<uint64_t> fill(state.userBegin.begin(), state.userBegin.end());
  for (NodeIndex node = 0; node < numNodes; ++node) {
    state.numWaiting[node] = uint32_t(trace.getDeps(node).size());
    for (NodeIndex dep : trace.getDeps(node))
      state.users[fill[dep]++] = node;
  }
  for (NodeIndex node = 0; node < numNodes; ++node)
    if (state.numWaiting[node] == 0)
      makeReady(rank, node);
}

void Simulator::makeReady(uint32_t rank, NodeIndex node) {
  Place place = {rank, node};
  const NodeRecord &record = getRecord(place);
  getState(place) = NodeState::Ready;
  switch (record.type) {
  case ChakraNodeType::CommRecv: {
    getState(place) = NodeState::Issued;
    ChannelState &channel = channels[record.channel];
    channel.recvs.push_back(place);
    match(channel);
    break;
  }
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    getState(place) = NodeState::Issued;
    endLater(place, /*isSlow=*/false);
    break;
  case ChakraNodeType::Comp:
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommColl:
    ranks[rank].ready[getUnit(record)].push(node);
    break;
  }
}

void Simulator::issue(uint32_t rank) {
  RankState &state = ranks[rank];
  for (unsigned unit = 0; unit < NumUnits; ++unit) {
    if (state.inFlight[unit] != noNode || state.ready[unit].empty())
      continue;
    NodeIndex node = state.ready[unit].top();
    state.ready[unit].pop();
    state.inFlight[unit] = node;
    Place place = {rank, node};
    getState(place) = NodeState::Issued;
    if (unit != Communication) {
      endLater(place, timing.computeIsSlow);
    } else if (getRecord(place).type == ChakraNodeType::CommColl) {
      issueCollective(rank, node);
    } else {
      ChannelState &channel = channels[getRecord(place).channel];
      channel.sends.push_back(place);
      if (timing.sendsAreBuffered)
        endLater(place, isSlowCommunication());
      match(channel);
    }
  }
}

void Simulator::issueCollective(uint32_t rank, NodeIndex node) {
  uint32_t index = getRecord({rank, node}).channel;
  GroupState &group = groups[index];
  if (group.numArrived == 0)
    group.first = {rank, node};
  const NodeRecord &first = getRecord(group.first);
  const NodeRecord &record = getRecord({rank, node});
  if ((first.commType != record.commType || first.size != record.size) && !mismatched) {
    // Orders that depend on timing: each rank alone looked right.
    mismatched = true;
    if (faults.isShown(diag::CollectiveMismatch))
      faults.getDiagnostics().report(SMLoc(), diag::CollectiveMismatch)
          << int64_t(group.numUses + 1) << table.describeGroup(index)
          << table.describe(group.first.rank, group.first.node)
          << table.describeCollective(group.first.rank, group.first.node) << table.describe(rank, node)
          << table.describeCollective(rank, node);
  }
  const std::vector<uint32_t> &members = table.groups[index].members;
  if (++group.numArrived < members.size())
    return;
  group.numArrived = 0;
  ++group.numUses;
  for (uint32_t member : members)
    endLater({member, ranks[member].inFlight[Communication]}, isSlowCommunication());
}

void Simulator::match(ChannelState &channel) {
  while (!channel.sends.empty() && !channel.recvs.empty()) {
    endLater(channel.recvs.front(), isSlowCommunication());
    if (!timing.sendsAreBuffered)
      endLater(channel.sends.front(), isSlowCommunication());
    channel.sends.pop_front();
    channel.recvs.pop_front();
  }
}

void Simulator::finish(Place place) {
  RankState &state = ranks[place.rank];
  getState(place) = NodeState::Done;
  ++state.numDone;
  for (NodeIndex &inFlight : state.inFlight)
    if (inFlight == place.node)
      inFlight = noNode;
  for (uint64_t i = state.userBegin[place.node]; i < state.userBegin[place.node + 1]; ++i)
    if (--state.numWaiting[state.users[i]] == 0)
      makeReady(place.rank, state.users[i]);
  issue(place.rank);
}

bool Simulator::run() {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    prepare(rank);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    issue(rank);
  do {
    now.insert(now.end(), later.begin(), later.end());
    later.clear();
    while (!now.empty()) {
      Place place = now.front();
      now.pop_front();
      finish(place);
    }
  } while (!later.empty());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].numDone < table.ranks[rank].nodes.size()) {
      reportStall();
      return false;
    }
  }
  return !mismatched;
}

//===----------------------------------------------------------------------===//
// Why nothing goes on
//===----------------------------------------------------------------------===//

NodeIndex Simulator::findUnissued(uint32_t rank, std::function<bool(const NodeRecord &)> isWanted) const {
  const RankTable &trace = table.ranks[rank];
  for (NodeIndex node = 0; node < trace.nodes.size(); ++node)
    if (ranks[rank].states[node] < NodeState::Issued && isWanted(trace.nodes[node]))
      return node;
  return noNode;
}

/// The node that must go on first, and why.
std::optional<Place> Simulator::getAwaited(Place place, std::string &why) {
  const NodeRecord &record = getRecord(place);
  RankState &state = ranks[place.rank];
  switch (getState(place)) {
  case NodeState::Done:
    return std::nullopt;
  case NodeState::Waiting:
    for (NodeIndex dep : table.ranks[place.rank].getDeps(place.node)) {
      if (state.states[dep] == NodeState::Done)
        continue;
      why = "depends on node " + std::to_string(table.ranks[place.rank].nodes[dep].id);
      return Place{place.rank, dep};
    }
    return std::nullopt;
  case NodeState::Ready:
    why = "is ready, but another one is in flight";
    return Place{place.rank, state.inFlight[getUnit(record)]};
  case NodeState::Issued:
    break;
  }

  if (record.type == ChakraNodeType::CommColl) {
    for (uint32_t member : table.groups[record.channel].members) {
      NodeIndex inFlight = ranks[member].inFlight[Communication];
      if (inFlight != noNode && getRecord({member, inFlight}).type == ChakraNodeType::CommColl &&
          getRecord({member, inFlight}).channel == record.channel)
        continue;
      why = table.describeCollective(place.rank, place.node) + " in " + table.describeGroup(record.channel) +
            " waits for rank " + std::to_string(member);
      NodeIndex awaited = findUnissued(member, [&](const NodeRecord &node) {
        return node.type == ChakraNodeType::CommColl && node.channel == record.channel;
      });
      return awaited == noNode ? std::nullopt : std::optional(Place{member, awaited});
    }
    return std::nullopt;
  }
  bool isSend = record.type == ChakraNodeType::CommSend;
  why = (isSend ? "send of tag " : "recv of tag ") + std::to_string(record.tag) + " waits for rank " +
        std::to_string(record.peer);
  NodeIndex awaited = findUnissued(record.peer, [&](const NodeRecord &node) {
    return node.channel == record.channel &&
           node.type == (isSend ? ChakraNodeType::CommRecv : ChakraNodeType::CommSend);
  });
  return awaited == noNode ? std::nullopt : std::optional(Place{record.peer, awaited});
}

/// Follows what waits for what from a stalled node until it comes back, and shows the circle.
void Simulator::reportStall() {
  if (!faults.isShown(diag::Stall))
    return;
  uint64_t numStalled = 0;
  std::optional<Place> start;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].numDone == table.ranks[rank].nodes.size())
      continue;
    ++numStalled;
    for (NodeIndex node = 0; !start; ++node)
      if (ranks[rank].states[node] != NodeState::Done)
        start = Place{rank, node};
  }

  struct Step {
    Place place;
    std::string why;
  };
  std::vector<Step> steps;
  llvm::DenseSet<std::pair<uint32_t, NodeIndex>> seen;
  std::optional<Place> place = start;
  while (place && seen.insert({place->rank, place->node}).second) {
    std::string why;
    std::optional<Place> awaited = getAwaited(*place, why);
    steps.push_back({*place, why});
    place = awaited;
  }
  size_t begin = 0;
  if (place)
    while (steps[begin].place.rank != place->rank || steps[begin].place.node != place->node)
      ++begin;

  DiagnosticBuilder builder = faults.getDiagnostics().report(SMLoc(), diag::Stall);
  builder << int64_t(numStalled) << int64_t(ranks.size())
          << (timing.sendsAreBuffered ? "buffered sends" : "sends that wait for their recv")
          << (timing.computeIsSlow ? "slow compute" : "slow communication");
  constexpr size_t maxShown = 16;
  for (size_t i = begin; i < steps.size() && i < begin + maxShown; ++i)
    builder.note(SMLoc(), diag::NoteText)
        << (table.describe(steps[i].place.rank, steps[i].place.node) + ": " + steps[i].why);
}

bool stage::simulate(const NodeTable &table, uint32_t numChannels, Timing timing, FaultReporter &faults) {
  return Simulator(table, numChannels, timing, faults).run();
}
