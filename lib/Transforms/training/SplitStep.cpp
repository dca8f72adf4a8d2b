//===- SplitStep.cpp - what a step does before its updates ----------------===//
#include "SplitStep.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class StepSplitter {
public:
  StepSplitter(Graph &graph, llvm::function_ref<void(Op &, Block &)> onUpdate) : graph(graph), onUpdate(onUpdate) {}

  void split(Block &from, Block &to) {
    std::vector<Op *> ops;
    for (auto &op : from)
      ops.push_back(op.get());
    for (Op *op : ops) {
      if (op->kind == OpKind::Yield)
        continue;
      if (op->kind == OpKind::Repeat) {
        splitRepeat(*op, to);
        continue;
      }
      bool isBehind = op->kind == OpKind::Update || op->kind == OpKind::Write;
      for (const Value *operand : op->getOperands())
        isBehind |= operand->getOp() && behind.contains(operand->getOp());
      if (isBehind)
        behind.insert(op);
      else
        to.append(from.take(op));
      if (op->kind == OpKind::Update)
        onUpdate(*op, to);
    }
  }

private:
  void splitRepeat(Op &repeat, Block &to) {
    auto loop = std::make_unique<Op>(static_cast<const OpAttributes &>(repeat));
    bool isEmpty = true;
    for (auto &body : repeat.bodies) {
      Block &other = loop->addBody(graph);
      split(*body, other);
      isEmpty &= other.empty();
      other.append(std::make_unique<Op>(OpKind::Yield, repeat.loc));
    }
    if (!isEmpty)
      to.append(std::move(loop));
  }

  Graph &graph;
  llvm::function_ref<void(Op &, Block &)> onUpdate;
  llvm::DenseSet<const Op *> behind;
};
} // namespace

void stage::splitStep(Graph &graph, Block &step, llvm::function_ref<void(Op &, Block &)> onUpdate) {
  StepSplitter(graph, onUpdate).split(step, graph.getPhase(PhaseKind::Reduce));
}
