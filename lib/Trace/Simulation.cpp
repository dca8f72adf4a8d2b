//===- Simulation.cpp - a greedy simulator of traces ----------------------===//
#include "Simulation.h"
#include "stage/Machine/Ticks.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include <deque>
#include <functional>
#include <map>
#include <queue>

using namespace stage;
using namespace stage::trace;

namespace {
/// Ranks are known by their slots.
struct Place {
  uint32_t rank;
  NodeIndex node;
};

using ReadyQueue = std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<NodeIndex>>;
enum class NodeState : uint8_t { Waiting, Ready, Issued, Done };

struct RankState {
  std::vector<uint32_t> numWaiting;
  std::vector<NodeState> states;
  /// By room, stream after stream.
  std::vector<ReadyQueue> ready;
  std::vector<NodeIndex> inFlight;
  std::vector<int64_t> issuedAt;
  size_t numDone = 0;
  bool isTouched = false; ///< Something has ended since it was last looked for what can be issued.
};

/// Of a group on a stream. Members issue its uses in turn, one at a time, so all are at the same use or have just left
/// it.
struct GroupState {
  uint32_t numArrived = 0;
  uint64_t numUses = 0;
  Place first = {};
};

struct ChannelState {
  struct Message {
    Place send;
    int64_t begin;
    int64_t end; ///< If the send does not wait for its recv.
  };
  std::deque<Message> sends;
  std::deque<Place> recvs;
};

class Simulator {
public:
  Simulator(const NodeTable &table, uint32_t numChannels, const Timing &timing, FaultReporter &faults,
            ExecutionRecorder *recorder)
      : table(table), timing(timing), faults(faults), recorder(recorder), ranks(table.ranks.size()),
        channels(numChannels) {
    for (const RankTable &rank : table.ranks)
      for (uint8_t stream : rank.streams)
        numStreams = std::max(numStreams, timing.mergesStreams ? 1u : stream + 1u);
    groups.resize(table.groups.size() * numStreams);
    for (RankState &rank : ranks) {
      rank.ready.resize(numRoomKinds * numStreams);
      rank.inFlight.resize(numRoomKinds * numStreams, noNode);
      rank.issuedAt.resize(numRoomKinds * numStreams);
    }
  }

  bool run();

private:
  void prepare(uint32_t rank);
  void makeReady(uint32_t rank, NodeIndex node);
  void touch(uint32_t rank);
  void issueTouched();
  void issue(uint32_t rank);
  void issueCollective(uint32_t rank, NodeIndex node);
  void match(ChannelState &channel);
  void finish(Place place);
  int64_t getDuration(Place place) const { return timing.duration(place.rank, place.node); }
  int64_t addTime(Place place, int64_t begin, int64_t duration);
  void endAt(Place place, int64_t issued, int64_t begin, int64_t end);
  /// What begins now and ends by itself.
  void begin(Place place) { endAt(place, now, now, addTime(place, now, getDuration(place))); }

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
  /// The room that a node takes, of those of all streams.
  unsigned getRoomIndex(Place place) const {
    return getStream(place) * numRoomKinds + unsigned(getRoom(table.ranks[place.rank], place.node, timing));
  }

  const NodeTable &table;
  const Timing &timing;
  FaultReporter &faults;
  ExecutionRecorder *recorder;
  std::vector<RankState> ranks;
  std::vector<GroupState> groups;
  std::vector<ChannelState> channels;
  /// What ends when, in the order in which it was found out.
  std::map<int64_t, std::vector<Place>> events;
  int64_t now = 0;
  std::vector<uint32_t> touched;
  unsigned numStreams = 1;
  bool isRefused = false; ///< After a report.
};
} // namespace

RoomKind stage::trace::getRoom(const RankTable &rank, NodeIndex node, const Timing &timing) {
  NodeFlags flags = rank.nodes[node];
  switch (flags.type) {
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommColl:
    return RoomKind::Communication;
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    if (!flags.isCpuOp)
      return timing.copiesShareRoom ? RoomKind::Communication : RoomKind::Copy;
    return RoomKind::HostCompute;
  case ChakraNodeType::Comp:
    return flags.isCpuOp ? RoomKind::HostCompute : RoomKind::Compute;
  case ChakraNodeType::CommRecv:
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    return RoomKind::None;
  }
  llvm_unreachable("covered switch");
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
  if (getRoom(table.ranks[rank], node, timing) != RoomKind::None) {
    getState(place) = NodeState::Ready;
    ranks[rank].ready[getRoomIndex(place)].push(node);
    return;
  }
  getState(place) = NodeState::Issued;
  if (getFlags(place).type != ChakraNodeType::CommRecv) {
    begin(place);
    return;
  }
  uint32_t number = getCommunication(place).channel;
  if (number == noChannel) {
    begin(place);
    return;
  }
  channels[number].recvs.push_back(place);
  match(channels[number]);
}

void Simulator::touch(uint32_t rank) {
  if (!std::exchange(ranks[rank].isTouched, true))
    touched.push_back(rank);
}

void Simulator::issueTouched() {
  // Nothing that is issued ends before the next round, so that no rank is touched meanwhile.
  for (uint32_t rank : touched) {
    ranks[rank].isTouched = false;
    issue(rank);
  }
  touched.clear();
}

void Simulator::issue(uint32_t rank) {
  RankState &state = ranks[rank];
  for (unsigned room = 0; room < numRoomKinds * numStreams; ++room) {
    if (state.inFlight[room] != noNode || state.ready[room].empty())
      continue;
    NodeIndex node = state.ready[room].top();
    state.ready[room].pop();
    state.inFlight[room] = node;
    state.issuedAt[room] = now;
    Place place = {rank, node};
    getState(place) = NodeState::Issued;
    ChakraNodeType type = getFlags(place).type;
    if (type == ChakraNodeType::CommColl) {
      issueCollective(rank, node);
      continue;
    }
    uint32_t number = type == ChakraNodeType::CommSend ? getCommunication(place).channel : noChannel;
    if (timing.sendsAreBuffered || number == noChannel)
      begin(place);
    if (number == noChannel)
      continue;
    channels[number].sends.push_back({place, now, addTime(place, now, getDuration(place))});
    match(channels[number]);
  }
}

void Simulator::issueCollective(uint32_t rank, NodeIndex node) {
  const Communication &record = getCommunication({rank, node});
  uint32_t index = record.channel;
  unsigned room = getRoomIndex({rank, node});
  GroupState &group = groups[index * numStreams + getStream({rank, node})];
  if (group.numArrived == 0)
    group.first = {rank, node};
  const Communication &first = getCommunication(group.first);
  if ((first.commType != record.commType || first.size != record.size) && !isRefused) {
    // Orders that depend on timing: each rank alone looked right.
    isRefused = true;
    if (faults.isShown(diag::CollectiveMismatch))
      faults.getDiagnostics().report(SMLoc(), diag::CollectiveMismatch)
          << int64_t(group.numUses + 1) << table.describeGroup(index)
          << table.describe(group.first.rank, group.first.node) << table.describeCollective(first)
          << table.describe(rank, node) << table.describeCollective(record);
  }
  const std::vector<uint32_t> &members = table.groups[index].members;
  if (++group.numArrived < members.size())
    return;
  group.numArrived = 0;
  ++group.numUses;
  int64_t duration = 0;
  for (uint32_t member : members) // each may have its own surcharges
    duration = std::max(duration, getDuration({member, ranks[member].inFlight[room]}));
  int64_t end = addTime(group.first, now, duration);
  for (uint32_t member : members)
    endAt({member, ranks[member].inFlight[room]}, ranks[member].issuedAt[room], now, end);
}

void Simulator::match(ChannelState &channel) {
  while (!channel.sends.empty() && !channel.recvs.empty()) {
    auto [send, begin, end] = channel.sends.front();
    Place recv = channel.recvs.front();
    channel.sends.pop_front();
    channel.recvs.pop_front();
    if (!timing.sendsAreBuffered) {
      begin = now;
      end = addTime(send, now, getDuration(send));
      endAt(send, ranks[send.rank].issuedAt[getRoomIndex(send)], begin, end);
    }
    endAt(recv, now, std::max(begin, now), std::max(end, now));
    if (recorder)
      recorder->deliver(send.rank, send.node, recv.rank, recv.node);
  }
}

int64_t Simulator::addTime(Place place, int64_t begin, int64_t duration) {
  if (duration < maxTicks - begin)
    return begin + duration;
  if (!std::exchange(isRefused, true))
    faults.report(diag::ExecutionTooLong, table.describe(place.rank, place.node));
  return begin;
}

void Simulator::endAt(Place place, int64_t issued, int64_t begin, int64_t end) {
  events[end].push_back(place);
  if (recorder)
    recorder->run(place.rank, place.node, issued, begin, end);
}

void Simulator::finish(Place place) {
  RankState &state = ranks[place.rank];
  getState(place) = NodeState::Done;
  ++state.numDone;
  if (getRoom(table.ranks[place.rank], place.node, timing) != RoomKind::None)
    state.inFlight[getRoomIndex(place)] = noNode;
  for (NodeIndex user : table.ranks[place.rank].getUsers(place.node))
    if (--state.numWaiting[user] == 0)
      makeReady(place.rank, user);
  touch(place.rank);
}

bool Simulator::run() {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    prepare(rank);
    touch(rank);
  }
  issueTouched();
  while (!events.empty() && !isRefused) {
    auto first = events.begin();
    now = first->first;
    std::vector<Place> ended = std::move(first->second);
    events.erase(first);
    for (Place place : ended)
      finish(place);
    issueTouched();
  }
  for (uint32_t rank = 0; rank < ranks.size() && !isRefused; ++rank) {
    if (ranks[rank].numDone < table.ranks[rank].getNumNodes()) {
      reportStall();
      return false;
    }
  }
  return !isRefused;
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
    return Place{place.rank, state.inFlight[getRoomIndex(place)]};
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
      NodeIndex inFlight = ranks[member].inFlight[getRoomIndex(place)];
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
  NodeIndex awaited = findUnissued(peer, isWanted(peer, isSend ? ChakraNodeType::CommRecv : ChakraNodeType::CommSend));
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

  DiagnosticBuilder builder = faults.getDiagnostics().report(SMLoc(), diag::Stall)
                              << int64_t(numStalled) << int64_t(ranks.size()) << timing.description;
  constexpr size_t maxShown = 16;
  for (size_t i = begin; i < steps.size() && i < begin + maxShown; ++i)
    builder.note(SMLoc(), diag::StalledNode)
        << table.describe(steps[i].place.rank, steps[i].place.node) << steps[i].why;
}

bool stage::trace::simulate(const NodeTable &table, uint32_t numChannels, const Timing &timing, FaultReporter &faults,
                            ExecutionRecorder *recorder) {
  return Simulator(table, numChannels, timing, faults, recorder).run();
}
