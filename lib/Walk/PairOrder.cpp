//===- PairOrder.cpp - two units that run interleaved ---------------------===//
#include "stage/Walk/PairOrder.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/ExposedCommunication.h"
#include "stage/Walk/UnitWalk.h"

using namespace stage;

namespace {
/// Finds the compute nodes of a unit that wait for communication of the unit.
class WaitLister : private UnitWalk {
public:
  WaitLister(const Graph &graph, llvm::ArrayRef<ProgramItem> items) : graph(graph) { walk(items); }

  /// A compute node of the main stream, and the last communication for which it waits.
  struct Wait {
    uint64_t node, communication;
  };
  std::vector<Wait> waits;
  uint64_t numNodes = 0;
  uint64_t endOfWork = 0; ///< Behind the last node that is no message to another stage.

private:
  void visitOp(const Op &op) override {
    std::optional<uint64_t> awaited;
    for (const Value *operand : op.getOperands())
      if (auto known = made.find(getName(operand)); known != made.end())
        awaited = std::max(awaited, std::optional<uint64_t>(known->second));
    bool moves = isCommunication(op.kind);
    auto [it, isNew] = haveNodes.try_emplace(&op, false);
    if (isNew)
      it->second = hasNode(graph, op);
    if (it->second) {
      bool isMain = !op.stream && getStreamKind(op) == StreamKind::Computation;
      if (isMain && awaited)
        waits.push_back({numNodes, *awaited});
      if (moves && !isExposed(graph, op))
        awaited = numNodes;
      else if (isMain)
        awaited.reset(); // what comes behind it has waited, too
      numNodes += op.kind == OpKind::Permute ? 2 : 1;
      endOfWork = numNodes;
    }
    if (awaited)
      for (auto &result : op.getResults())
        made[getName(result.get())] = *awaited;
  }
  void bind(IterationValue from, IterationValue to) override {
    if (auto known = made.find(from); known != made.end())
      made[to] = uint64_t(known->second);
  }
  void visitReceive(const ProgramItem &item, unsigned, IterationValue) override {
    if (item.isLocal)
      return;
    ++numNodes;
    endOfWork = numNodes;
  }
  void visitSend(const ProgramItem &item, unsigned, IterationValue) override {
    if (!item.isLocal)
      numNodes += item.isBlocking ? 2 : 1;
  }

  const Graph &graph;
  llvm::DenseMap<const Op *, bool> haveNodes;
  llvm::DenseMap<IterationValue, uint64_t> made; ///< By which communication of the unit; computed values are not there.
};
} // namespace

void PairOrder::add(unsigned unit, uint64_t begin, uint64_t end) {
  if (begin == end)
    return;
  turnsOf[unit].push_back(unsigned(turns.size()));
  turns.push_back({unit, begin, end, getNumNodes()});
}

PairOrder::PairOrder(const Graph &graph, llvm::ArrayRef<ProgramItem> first, llvm::ArrayRef<ProgramItem> second) {
  const WaitLister units[] = {{graph, first}, {graph, second}};
  std::array<uint64_t, 2> next = {0, 0};
  std::array<size_t, 2> nextWait = {0, 0};
  for (unsigned unit = 0; next[0] < units[0].endOfWork || next[1] < units[1].endOfWork; unit = 1 - unit) {
    const WaitLister &own = units[unit];
    uint64_t begin = next[unit], end = own.endOfWork;
    size_t &wait = nextWait[unit];
    auto givesTurn = [&](const WaitLister::Wait &each) { return each.node > begin && each.communication >= begin; };
    if (next[1 - unit] < units[1 - unit].endOfWork) {
      while (wait < own.waits.size() && !givesTurn(own.waits[wait]))
        ++wait;
      if (wait < own.waits.size())
        end = own.waits[wait].node;
    }
    add(unit, begin, end);
    next[unit] = end;
  }
  for (unsigned unit : {0, 1})
    add(unit, units[unit].endOfWork, units[unit].numNodes);
}

uint64_t PairOrder::getPlace(unsigned unit, uint64_t position) const {
  auto found = llvm::partition_point(turnsOf[unit], [&](unsigned turn) { return turns[turn].end <= position; });
  const Turn &turn = turns[*found];
  return turn.place + position - turn.begin;
}

PairOrder::Node PairOrder::find(uint64_t place) const {
  const Turn &turn = *std::prev(llvm::partition_point(turns, [&](const Turn &each) { return each.place <= place; }));
  return {turn.unit, turn.begin + place - turn.place};
}
