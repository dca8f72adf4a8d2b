//===- KeepLastUnit.cpp - what backward need not gather again -------------===//
#include "KeepLastUnit.h"
#include "sharding/ReplacedValues.h"
#include "llvm/ADT/SetVector.h"

using namespace stage;

namespace {
class LastUnitKeeper {
public:
  LastUnitKeeper(Graph &graph, const llvm::StringMap<std::string> &units) : graph(graph), units(units) {}

  void run() {
    if (!graph.training)
      return; // decode steps come long after, and run other layers first
    const Op *release = findLastRelease();
    if (!release)
      return;
    const Op &gather = *release->getOperand(0)->getOp();
    unit = getUnit(gather);
    Op *repeat = gather.getBlock()->getParent();
    if (!repeat)
      return keep(graph.getForward(), nullptr);
    int64_t count = countIterations(*repeat);
    if (count == 1 || repeat->cases.count(gather.getBlock()->getNumber(), 0, count) == 1)
      keep(*gather.getBlock(), repeat);
  }

private:
  int64_t countIterations(const Op &repeat) const {
    if (!repeat.cases.getRuns().empty())
      return repeat.cases.getNumIterations();
    SizeValue count = evaluateCount(repeat.count, graph.binding);
    return count ? int64_t(count.value.num) : 1; // that it has none is said elsewhere
  }

  const Op *findLastRelease() const {
    for (auto &op : llvm::reverse(graph.getForward())) {
      if (op->kind == OpKind::Release)
        return op.get();
      if (op->kind == OpKind::Repeat)
        for (auto &inner : llvm::reverse(op->getBody(countIterations(*op) - 1)))
          if (inner->kind == OpKind::Release)
            return inner.get();
    }
    return nullptr;
  }

  llvm::StringRef getUnit(const Op &gather) const {
    auto found = units.find(gather.getOperand(0)->path);
    return found == units.end() ? "" : llvm::StringRef(found->second);
  }

  /// Of a block of forward, which is the body of a repeat or the top.
  void keep(Block &block, const Op *repeat) {
    llvm::DenseMap<const Value *, Value *> gathered;
    for (auto &op : block)
      if (findRelease(*op) && getUnit(*op) == unit && !isGatheredByStages(*op))
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          gathered[op->getOperand(i)] = op->getResult(i);
    for (Block &phase : graph.getPhases())
      if (phase.getPhase() != PhaseKind::Forward && !isOncePerStep(phase.getPhase()))
        if (Block *later = findBlock(phase, repeat, block.getNumber()))
          replace(*later, gathered);
    replaced.follow(graph);
  }

  /// Where what an op gathers of a unit is released in its block; null if it gathers none.
  static Op *findRelease(const Op &op) {
    if (isGatherOfState(op))
      for (auto [user, operand] : op.getResult()->getUses())
        if (user->kind == OpKind::Release && user->getBlock() == op.getBlock())
          return user;
    return nullptr;
  }

  /// Each virtual stage that uses it gathers it, and none of them is known to have what another one keeps.
  bool isGatheredByStages(const Op &gather) const {
    return graph.pipeline.axis && !gather.getBlock()->getParent() && !gather.virtualStage;
  }

  static Block *findBlock(Block &phase, const Op *repeat, unsigned number) {
    if (!repeat)
      return &phase;
    for (auto &op : phase)
      if (op->kind == OpKind::Repeat && op->loop == repeat->loop)
        return op->bodies[number].get();
    return nullptr;
  }

  /// All that forward has gathered at once is there until what backward would have gathered is released.
  void replace(Block &block, const llvm::DenseMap<const Value *, Value *> &gathered) {
    for (auto it = block.begin(); it != block.end();) {
      Op &op = **it++;
      Op *release = findRelease(op);
      if (!release || !llvm::all_of(op.getOperands(), [&](const Value *param) { return gathered.count(param); }))
        continue;
      if (it != block.end() && it->get() == release)
        ++it;
      llvm::SetVector<Op *> kept;
      for (unsigned i = 0; i < op.getNumOperands(); ++i)
        kept.insert(gathered.lookup(op.getOperand(i))->getOp());
      for (Op *gather : kept) {
        auto owner = std::make_unique<Op>(static_cast<const OpAttributes &>(*release));
        for (auto &result : gather->getResults())
          owner->addOperand(result.get());
        block.insertAfter(release, std::move(owner));
      }
      block.erase(release);
      for (unsigned i = 0; i < op.getNumOperands(); ++i) {
        Value &kept = *gathered.lookup(op.getOperand(i));
        op.getResult(i)->replaceAllUsesWith(&kept);
        replaced.await(*op.getResult(i), kept);
      }
      replaced.retire(op);
    }
  }

  Graph &graph;
  const llvm::StringMap<std::string> &units;
  llvm::StringRef unit;
  ReplacedValues replaced;
};
} // namespace

void stage::keepLastUnit(Graph &graph, const llvm::StringMap<std::string> &units) {
  LastUnitKeeper(graph, units).run();
}
