//===- Simulation.cpp - a greedy simulator of traces ----------------------===//
#include "Simulation.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include <deque>
#include <functional>
#include <queue>

using namespace stage;

namespace {
/// Ranks are known by their slots.
struct Place {
  uint32_t rank;
  NodeIndex node;
};

using ReadyQueue = std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<NodeIndex>>;
enum class NodeState : uint8_t { Waiting, Ready, Issued, Done };

/// The resources of a rank that hold one node at a time, for each stream.
enum Unit : unsigned { ComputeUnit, CpuComputeUnit, CommunicationUnit, NumUnits };

struct RankState {
  std::vector<uint32_t> numWaiting;
  std::vector<NodeState> states;
  /// By unit, stream after stream.
  std::vector<ReadyQueue> ready;
  std::vector<NodeIndex> inFlight;
  size_t numDone = 0;
};

/// Of a group on a stream. Members issue its uses in turn, one at a time, so all are at the same use or have just left
/// it.
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
      : table(table), timing(timing), faults(faults), ranks(table.ranks.size()), channels(numChannels) {
    for (const RankTable &rank : table.ranks)
      for (uint8_t stream : rank.streams)
        numStreams = std::max(numStreams, timing.mergesStreams ? 1u : stream + 1u);
    groups.resize(table.groups.size() * numStreams);
    for (RankState &rank : ranks) {
      rank.ready.resize(NumUnits * numStreams);
      rank.inFlight.resize(NumUnits * numStreams, noNode);
    }
  }

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
  NodeIndex findUnissued(uint32_t rank, llvm::function_ref<bool(NodeIndex)> isWanted) const;

  NodeFlags getFlags(Place place) const { return table.ranks[place.rank].nodes[place.node]; }
  const Communication &getCommunication(Place place) const {
    return table.ranks[place.rank].getCommunication(place.node);
  }
  NodeState &getState(Place place) { return ranks[place.rank].states[place.node]; }
  unsigned getStream(Place place) const {
    return timing.mergesStreams ? 0 : table.ranks[place.rank].getStream(place.node);
  }
  /// The resource that a node takes.
  unsigned getUnit(Place place) const;

  const NodeTable &table;
  Timing timing;
  FaultReporter &faults;
  std::vector<RankState> ranks;
  std::vector<GroupState> groups;
  std::vector<ChannelState> channels;
  std::deque<Place> now;
  std::vector<Place> later;
  unsigned numStreams = 1;
  bool mismatched = false;
};
} // namespace

unsigned Simulator::getUnit(Place place) const {
  NodeFlags node = getFlags(place);
  Unit unit = node.isCpuOp ? CpuComputeUnit : ComputeUnit;
  bool isCopy = isCopyNode(node.type) && !node.isCpuOp;
  if (isCopy || node.type == ChakraNodeType::CommSend || node.type == ChakraNodeType::CommColl)
    unit = CommunicationUnit;
  return getStream(place) * NumUnits + unit;
}

void Simulator::prepare(uint32_t rank) {
  const RankTable &trace = table.ranks[rank];
  RankState &state = ranks[rank];
  size_t numNodes = trace.getNumNodes();
  state.states.resize(numNodes, NodeState::Waiting);
  state.numWaiting.resize(numNodes);
  for (NodeIndex node = 0; node < numNodes; ++node)
    state.numWaiting[node] = uint32_t(trace.getDeps(node).size());
  for (NodeIndex node = 0; node < numNodes; ++node)
    if (state.numWaiting[node] == 0)
      makeReady(rank, node);
}

void Simulator::makeReady(uint32_t rank, NodeIndex node) {
  Place place = {rank, node};
  NodeFlags flags = getFlags(place);
  getState(place) = NodeState::Ready;
  switch (flags.type) {
  case ChakraNodeType::CommRecv: {
    getState(place) = NodeState::Issued;
    uint32_t number = getCommunication(place).channel;
    if (number == noChannel) {
      endLater(place, isSlowCommunication());
      break;
    }
    channels[number].recvs.push_back(place);
    match(channels[number]);
    break;
  }
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    getState(place) = NodeState::Issued;
    endLater(place, /*isSlow=*/false);
    break;
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
  case ChakraNodeType::Comp:
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommColl:
    ranks[rank].ready[getUnit(place)].push(node);
    break;
  }
}

void Simulator::issue(uint32_t rank) {
  RankState &state = ranks[rank];
  for (unsigned unit = 0; unit < NumUnits * numStreams; ++unit) {
    if (state.inFlight[unit] != noNode || state.ready[unit].empty())
      continue;
    NodeIndex node = state.ready[unit].top();
    state.ready[unit].pop();
    state.inFlight[unit] = node;
    Place place = {rank, node};
    getState(place) = NodeState::Issued;
    if (unit % NumUnits != CommunicationUnit) {
      endLater(place, timing.computeIsSlow);
    } else if (getFlags(place).type == ChakraNodeType::CommColl) {
      issueCollective(rank, node);
    } else if (isCopyNode(getFlags(place).type)) {
      endLater(place, isSlowCommunication());
    } else {
      uint32_t number = getCommunication(place).channel;
      if (timing.sendsAreBuffered || number == noChannel)
        endLater(place, isSlowCommunication());
      if (number == noChannel)
        continue;
      channels[number].sends.push_back(place);
      match(channels[number]);
    }
  }
}

void Simulator::issueCollective(uint32_t rank, NodeIndex node) {
  const Communication &record = getCommunication({rank, node});
  uint32_t index = record.channel;
  unsigned unit = getUnit({rank, node});
  GroupState &group = groups[index * numStreams + getStream({rank, node})];
  if (group.numArrived == 0)
    group.first = {rank, node};
  const Communication &first = getCommunication(group.first);
  if ((first.commType != record.commType || first.size != record.size) && !mismatched) {
    // Orders that depend on timing: each rank alone looked right.
    mismatched = true;
    if (faults.isShown(diag::CollectiveMismatch))
      faults.getDiagnostics().report(SMLoc(), diag::CollectiveMismatch)
          << int64_t(group.numUses + 1) << table.describeGroup(index)
          << table.describe(group.first.rank, group.first.node)
          << table.describeCollective(first) << table.describe(rank, node) << table.describeCollective(record);
  }
  const std::vector<uint32_t> &members = table.groups[index].members;
  if (++group.numArrived < members.size())
    return;
  group.numArrived = 0;
  ++group.numUses;
  for (uint32_t member : members)
    endLater({member, ranks[member].inFlight[unit]}, isSlowCommunication());
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
  for (NodeIndex user : table.ranks[place.rank].getUsers(place.node))
    if (--state.numWaiting[user] == 0)
      makeReady(place.rank, user);
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
    if (ranks[rank].numDone < table.ranks[rank].getNumNodes()) {
      reportStall();
      return false;
    }
  }
  return !mismatched;
}

//===----------------------------------------------------------------------===//
// Why nothing goes on
//===----------------------------------------------------------------------===//

NodeIndex Simulator::findUnissued(uint32_t rank, llvm::function_ref<bool(NodeIndex)> isWanted) const {
  for (NodeIndex node = 0; node < table.ranks[rank].getNumNodes(); ++node)
    if (ranks[rank].states[node] < NodeState::Issued && isWanted(node))
      return node;
  return noNode;
}

/// The node that must go on first, and why.
std::optional<Place> Simulator::getAwaited(Place place, std::string &why) {
  const RankTable &trace = table.ranks[place.rank];
  RankState &state = ranks[place.rank];
  switch (getState(place)) {
  case NodeState::Done:
    return std::nullopt;
  case NodeState::Waiting:
    for (NodeIndex dep : trace.getDeps(place.node)) {
      if (state.states[dep] == NodeState::Done)
        continue;
      why = "depends on node " + std::to_string(trace.getId(dep));
      return Place{place.rank, dep};
    }
    return std::nullopt;
  case NodeState::Ready:
    why = "is ready, but another one is in flight";
    return Place{place.rank, state.inFlight[getUnit(place)]};
  case NodeState::Issued:
    break;
  }

  const Communication &record = getCommunication(place);
  // Whether a node of another rank is what this one waits for.
  auto isWanted = [&](uint32_t rank, ChakraNodeType type) {
    return [this, rank, type, &record](NodeIndex node) {
      return getFlags({rank, node}).type == type && getCommunication({rank, node}).channel == record.channel;
    };
  };
  if (getFlags(place).type == ChakraNodeType::CommColl) {
    for (uint32_t member : table.groups[record.channel].members) {
      NodeIndex inFlight = ranks[member].inFlight[getUnit(place)];
      auto isSameGroup = isWanted(member, ChakraNodeType::CommColl);
      if (inFlight != noNode && isSameGroup(inFlight))
        continue;
      why = table.describeCollective(record) + " in " + table.describeGroup(record.channel) + " waits for rank " +
            std::to_string(table.ranks[member].rank);
      NodeIndex awaited = findUnissued(member, isSameGroup);
      return awaited == noNode ? std::nullopt : std::optional(Place{member, awaited});
    }
    return std::nullopt;
  }
  bool isSend = getFlags(place).type == ChakraNodeType::CommSend;
  why = (isSend ? "send of tag " : "recv of tag ") + std::to_string(record.tag) + " waits for rank " +
        std::to_string(record.peer);
  uint32_t peer = table.findSlot(record.peer);
  NodeIndex awaited =
      findUnissued(peer, isWanted(peer, isSend ? ChakraNodeType::CommRecv : ChakraNodeType::CommSend));
  return awaited == noNode ? std::nullopt : std::optional(Place{peer, awaited});
}

/// Follows what waits for what from a stalled node until it comes back, and shows the circle.
void Simulator::reportStall() {
  if (!faults.isShown(diag::Stall))
    return;
  uint64_t numStalled = 0;
  std::optional<Place> start;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].numDone == table.ranks[rank].getNumNodes())
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
    builder.note(SMLoc(), diag::StalledNode)
        << table.describe(steps[i].place.rank, steps[i].place.node) << steps[i].why;
}

bool stage::simulate(const NodeTable &table, uint32_t numChannels, Timing timing, FaultReporter &faults) {
  return Simulator(table, numChannels, timing, faults).run();
}
