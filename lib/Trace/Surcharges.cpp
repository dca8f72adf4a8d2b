//===- Surcharges.cpp - what nodes take beside each other -----------------===//
#include "Surcharges.h"
#include "Simulation.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <array>
#include <map>

using namespace stage;
using namespace stage::trace;

namespace {
/// Sums of many durations.
using Wide = __int128;

/// Nodes of one kind on one stream, in the order of ids.
struct Sequence {
  RoomKind room = RoomKind::None;
  std::vector<NodeIndex> nodes;
};

/// Positions in a sequence, from `begin` to before `end`.
struct Window {
  uint32_t begin, end;
};

/// Sums of durations up to each of some positions of a sequence.
class RunningSums {
public:
  void add(uint32_t position, Ticks ticks) {
    positions.push_back(position);
    sums.push_back(sums.back() + ticks);
  }
  Wide sum(Window window) const {
    if (window.begin >= window.end)
      return 0;
    return sums[count(window.end)] - sums[count(window.begin)];
  }

private:
  /// How many positions are below `end`.
  size_t count(uint32_t end) const { return llvm::lower_bound(positions, end) - positions.begin(); }
  std::vector<uint32_t> positions;
  std::vector<Wide> sums = {0};
};

/// Finds, as it is asked about nodes in the order of ids, those of a sequence whose units differ by at most 1.
class UnitWindows {
public:
  UnitWindows(const RankTable &rank, const Sequence &sequence) : rank(rank), sequence(sequence) {}

  Window advance(int32_t unit) {
    auto isBelow = [&](uint32_t position, int64_t unit) {
      return position < sequence.nodes.size() && rank.times[sequence.nodes[position]].unit < unit;
    };
    while (isBelow(window.begin, int64_t(unit) - 1))
      ++window.begin;
    while (isBelow(window.end, int64_t(unit) + 2))
      ++window.end;
    return window;
  }

private:
  const RankTable &rank;
  const Sequence &sequence;
  Window window = {0, 0};
};

class SurchargeFinder {
public:
  SurchargeFinder(const RankTable &rank, bool mergesStreams) : rank(rank), mergesStreams(mergesStreams) {}

  std::vector<Ticks> find() {
    collectSequences();
    addLaunches();
    shared = alone;
    addSharing();
    final = shared;
    addTaxOfCompute();
    addTaxOfCommunication();
    return std::move(final);
  }

private:
  void collectSequences();
  void addLaunches();
  void addSharing();
  void addTaxOfCompute();
  void addTaxOfCommunication();
  void passQueue(llvm::ArrayRef<uint32_t> positions, const Sequence &sequence, llvm::ArrayRef<uint32_t> sequenceBefore,
                 llvm::ArrayRef<uint32_t> computeBefore, std::vector<Ticks> &beside) const;

  std::vector<uint32_t> countBefore(const Sequence &sequence) const;
  std::vector<uint32_t> findAfter(const Sequence &sequence) const;

  bool isDeviceCompute(NodeIndex node) const {
    return rank.nodes[node].type == ChakraNodeType::Comp && !rank.nodes[node].isCpuOp;
  }
  /// Adds to a duration what is at most maxTicks, and cuts it there.
  static void addTo(Ticks &duration, Wide more) { duration = Ticks(std::min<Wide>(duration + more, maxTicks)); }

  const RankTable &rank;
  const bool mergesStreams;
  std::vector<Ticks> alone, shared, final;
  static constexpr uint16_t noSequence = UINT16_MAX;
  std::vector<Sequence> sequences;
  std::vector<uint16_t> sequenceOf; ///< By nodes.
  Sequence none;
  const Sequence *compute = &none; ///< Of the device, on the main stream.
};
} // namespace

void SurchargeFinder::collectSequences() {
  std::map<std::pair<RoomKind, uint8_t>, uint16_t> numbers;
  sequenceOf.assign(rank.getNumNodes(), noSequence);
  alone.reserve(rank.getNumNodes());
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    alone.push_back(std::max<Ticks>(rank.times[node].duration, 0));
    RoomKind room = getRoom(rank, node, Timing{.copiesShareRoom = false});
    uint8_t stream = mergesStreams ? 0 : rank.getStream(node);
    bool isMainCompute = room == RoomKind::Compute && stream == 0;
    if (!isMainCompute && room != RoomKind::Communication && room != RoomKind::Copy)
      continue;
    auto [number, isNew] = numbers.try_emplace({room, stream}, uint16_t(sequences.size()));
    if (isNew)
      sequences.push_back({room, {}});
    sequences[number->second].nodes.push_back(node);
    sequenceOf[node] = number->second;
  }
  for (const Sequence &sequence : sequences)
    if (sequence.room == RoomKind::Compute)
      compute = &sequence;
}

/// For each node, how many of a sequence have ended when it has: those for which it waits, and itself.
std::vector<uint32_t> SurchargeFinder::countBefore(const Sequence &sequence) const {
  std::vector<uint32_t> counts(rank.getNumNodes());
  std::vector<uint32_t> atLast(sequences.size()); // of the last node of each sequence
  uint32_t position = 0;
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    uint32_t count = 0;
    for (NodeIndex dep : rank.getDeps(node))
      count = std::max(count, counts[dep]);
    if (sequenceOf[node] != noSequence) {
      if (position < sequence.nodes.size() && sequence.nodes[position] == node)
        count = ++position;
      uint32_t &last = atLast[sequenceOf[node]];
      last = count = std::max(count, last);
    }
    counts[node] = count;
  }
  return counts;
}

/// For each node, the position of the first of a sequence that waits for it, or is it; behind the last if none does.
std::vector<uint32_t> SurchargeFinder::findAfter(const Sequence &sequence) const {
  uint32_t end = uint32_t(sequence.nodes.size()), position = end;
  std::vector<uint32_t> firsts(rank.getNumNodes());
  std::vector<uint32_t> atNext(sequences.size(), end); // of the next node of each sequence
  for (NodeIndex node = NodeIndex(rank.getNumNodes()); node-- > 0;) {
    uint32_t first = end;
    for (NodeIndex user : rank.getUsers(node))
      first = std::min(first, firsts[user]);
    if (sequenceOf[node] != noSequence) {
      if (position > 0 && sequence.nodes[position - 1] == node)
        first = --position;
      uint32_t &next = atNext[sequenceOf[node]];
      next = first = std::min(first, next);
    }
    firsts[node] = first;
  }
  return firsts;
}

void SurchargeFinder::addLaunches() {
  NodeIndex last = noNode;
  Wide launches = 0, computed = 0;
  auto finishUnit = [&] {
    if (last != noNode && launches > computed)
      addTo(alone[last], launches - computed);
    launches = computed = 0;
  };
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    if (!isDeviceCompute(node) || !alone[node]) // another node's kernel does what takes no time
      continue;
    if (last != noNode && rank.times[node].unit != rank.times[last].unit)
      finishUnit();
    last = node;
    launches += rank.terms.launch;
    computed += alone[node];
  }
  finishUnit();
  if (last != noNode)
    addTo(alone[last], rank.terms.stepHost);
}

void SurchargeFinder::addSharing() {
  auto communicates = [](const Sequence &sequence) { return sequence.room == RoomKind::Communication; };
  if (llvm::count_if(sequences, communicates) < 2)
    return;
  for (const Sequence &other : sequences) {
    if (!communicates(other))
      continue;
    std::vector<uint32_t> before = countBefore(other), after = findAfter(other);
    std::map<uint8_t, RunningSums> byLevel;
    for (uint32_t position = 0; position < other.nodes.size(); ++position) {
      NodeIndex node = other.nodes[position];
      byLevel[rank.getCommunication(node).level].add(position, alone[node]);
    }
    for (const Sequence &sequence : sequences) {
      if (!communicates(sequence) || &sequence == &other)
        continue;
      UnitWindows windows(rank, other);
      for (NodeIndex node : sequence.nodes) {
        Window window = windows.advance(rank.times[node].unit);
        auto sums = byLevel.find(rank.getCommunication(node).level);
        if (sums == byLevel.end())
          continue;
        Wide met = sums->second.sum({std::max(window.begin, before[node]), std::min(window.end, after[node])});
        addTo(shared[node], std::min<Wide>(alone[node], met));
      }
    }
  }
}

/// Passes a queue by all computations. `positions`: of its members in their sequence; `sequenceBefore`,
/// `computeBefore`: how many of the sequence, and of the computations, stand before each node. `beside`: of each
/// computation, how much of it has a member beside it; a longer queue takes the place of a shorter one.
void SurchargeFinder::passQueue(llvm::ArrayRef<uint32_t> positions, const Sequence &sequence,
                                llvm::ArrayRef<uint32_t> sequenceBefore, llvm::ArrayRef<uint32_t> computeBefore,
                                std::vector<Ticks> &beside) const {
  std::vector<Ticks> left; // of each member
  for (uint32_t position : positions)
    left.push_back(shared[sequence.nodes[position]]);
  size_t first = 0, end = 0; // of the members that are in the queue
  Wide length = 0;
  for (uint32_t number = 0; number < compute->nodes.size(); ++number) {
    NodeIndex node = compute->nodes[number];
    // A computation waits for these, whether they have come into the queue or not.
    for (; first < positions.size() && positions[first] < sequenceBefore[node]; ++first)
      if (first < end)
        length -= left[first];
    end = std::max(first, end);
    for (; end < positions.size() && computeBefore[sequence.nodes[positions[end]]] <= number; ++end)
      length += left[end];
    Ticks passed = Ticks(std::min<Wide>(alone[node], length));
    beside[number] = std::max(beside[number], passed);
    length -= passed;
    while (passed > 0) {
      Ticks taken = std::min(passed, left[first]);
      passed -= taken;
      left[first] -= taken;
      if (left[first] == 0)
        ++first;
    }
  }
}

void SurchargeFinder::addTaxOfCompute() {
  const SurchargeTerms &terms = rank.terms;
  struct Kind {
    Tax tax;
    RoomKind room;
    bool isSend;
    std::vector<Ticks> beside;
  };
  std::array<Kind, 3> kinds = {Kind{terms.collective, RoomKind::Communication, false, {}},
                               Kind{terms.send, RoomKind::Communication, true, {}},
                               Kind{terms.copy, RoomKind::Copy, false, {}}};
  if (llvm::none_of(kinds, [](const Kind &kind) { return bool(kind.tax); }))
    return;
  std::vector<uint32_t> computeBefore = countBefore(*compute);
  for (Kind &kind : kinds)
    kind.beside.resize(compute->nodes.size());
  for (const Sequence &sequence : sequences) {
    std::vector<uint32_t> sequenceBefore;
    for (Kind &kind : kinds) {
      if (!kind.tax || kind.room != sequence.room)
        continue;
      std::vector<uint32_t> positions;
      for (uint32_t position = 0; position < sequence.nodes.size(); ++position)
        if ((rank.nodes[sequence.nodes[position]].type == ChakraNodeType::CommSend) == kind.isSend)
          positions.push_back(position);
      if (sequenceBefore.empty())
        sequenceBefore = countBefore(sequence);
      passQueue(positions, sequence, sequenceBefore, computeBefore, kind.beside);
    }
  }
  for (const Kind &kind : kinds)
    for (uint32_t number = 0; number < compute->nodes.size(); ++number)
      addTo(final[compute->nodes[number]], kind.tax.of(kind.beside[number]));
}

void SurchargeFinder::addTaxOfCommunication() {
  if (!rank.terms.communication)
    return;
  std::vector<uint32_t> before = countBefore(*compute), after = findAfter(*compute);
  RunningSums sums;
  for (uint32_t position = 0; position < compute->nodes.size(); ++position)
    sums.add(position, alone[compute->nodes[position]]);
  for (const Sequence &sequence : sequences) {
    if (sequence.room != RoomKind::Communication)
      continue;
    UnitWindows windows(rank, *compute);
    for (NodeIndex node : sequence.nodes) {
      Window window = windows.advance(rank.times[node].unit);
      Wide met = sums.sum({std::max(window.begin, before[node]), std::min(window.end, after[node])});
      addTo(final[node], rank.terms.communication.of(Ticks(std::min<Wide>(alone[node], met))));
    }
  }
}

std::vector<Ticks> stage::trace::findDurations(const RankTable &rank, bool mergesStreams) {
  return SurchargeFinder(rank, mergesStreams).find();
}
