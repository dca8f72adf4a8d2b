//===- SplitBackward.cpp - gradients of inputs, and those of weights ------===//
//
// Problem: a schedule may run backward in two halves (law L8): what the stage before
// waits for, and the rest whenever there is time. Differentiation makes one backward.
//
//   backward                                 backward_input
//   %dx = linear.dx(%dy, %w)                 %dx = linear.dx(%dy, %w)
//   %dw = linear.dw(%x, %dy)          ->     %dn, %dg = rms_norm.grad(%n, %g, %dx)
//   accumulate(%dw, %w)                      accumulate(%dg, %g)
//   %dn, %dg = rms_norm.grad(%n, %g, %dx)    backward_weight
//   accumulate(%dg, %g)                      %dw = linear.dw(%x, %dy)
//                                            accumulate(%dw, %w)
//
// Algorithm: the half for weights has what makes gradients of parameters, and of what is
// computed of parameters alone, for nothing but to be added up. The half for inputs has
// the rest: gradients of activations, and those of parameters that come with them. Both
// are copies of backward, in its order; a repeat of it becomes one that carries what it
// carried, and one of the same loop that carries nothing and reads what the former has
// made. Where the schedule runs some microbatches' backward as a whole, that stays, too,
// and the step adds up what all of them accumulate.
//
// It comes before shardings are decided: a reshard is shared within a half, and what the
// half for weights reads of the other is kept in the form that costs least memory (L6).
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Graph.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class BackwardSplitter {
public:
  BackwardSplitter(Graph &graph, Block &whole) : graph(graph), whole(whole) {}

  void run() {
    findOfParameters();
    findOfWeights(whole);
    copy(whole, graph.getPhase(PhaseKind::BackwardInput), graph.getPhase(PhaseKind::BackwardWeight));
    if (Block *step = graph.findPhase(PhaseKind::Step))
      Graph::walk(*step, [&](Op &op) {
        if (op.kind == OpKind::Update)
          addGradients(op);
      });
  }

private:
  /// Values of forward that depend on parameters and on nothing that differs from microbatch to microbatch.
  void findOfParameters() {
    llvm::DenseSet<const Value *> isFixed; // does not depend on the microbatch
    Graph::walk(graph.getForward(), [&](Op &op) {
      bool isSource = isState(op.kind) || op.kind == OpKind::Constant;
      auto depends = [&](const Value *operand) { return !isFixed.contains(operand); };
      if (!isSource && (op.kind != OpKind::Compute || llvm::any_of(op.getOperands(), depends)))
        return;
      for (auto &result : op.getResults()) {
        isFixed.insert(result.get());
        if (op.kind == OpKind::Param ||
            llvm::any_of(op.getOperands(), [&](const Value *operand) { return ofParameters.contains(operand); }))
          ofParameters.insert(result.get());
      }
    });
  }

  /// From the last op to the first: what makes gradients of parameters for ops that do, or that add them up.
  void findOfWeights(Block &block) {
    for (auto it = block.end(); it != block.begin();) {
      Op &op = **--it;
      for (auto &body : op.bodies)
        findOfWeights(*body);
      if (op.kind == OpKind::Compute && llvm::all_of(op.getResults(), [&](auto &result) {
            return (!result->primal || ofParameters.contains(result->primal)) &&
                   llvm::all_of(result->getUses(), [&](const std::pair<Op *, unsigned> &use) {
                     return use.first->kind == OpKind::Accumulate || ofWeights.contains(use.first);
                   });
          }))
        ofWeights.insert(&op);
    }
    for (auto &op : block)
      if (op->kind == OpKind::Accumulate && ofWeights.contains(op->getOperand(0)->getOp()))
        ofWeights.insert(op.get());
  }

  void copy(Block &from, Block &input, Block &weight) {
    for (auto &op : from)
      if (op->kind == OpKind::Repeat)
        copyRepeat(*op, input, weight);
      else
        copyOp(*op, ofWeights.contains(op.get()) ? weight : input);
  }

  Op &copyOp(const Op &op, Block &to) {
    Op &made = *to.append(std::make_unique<Op>(static_cast<const OpAttributes &>(op)));
    for (Value *operand : op.getOperands())
      made.addOperand(getCopy(operand));
    for (auto &result : op.getResults())
      copyValue(*result, *made.addResult(result->type, result->path));
    return made;
  }

  void copyRepeat(Op &repeat, Block &input, Block &weight) {
    Op &carrying = copyOp(repeat, input);
    auto rest = std::make_unique<Op>(static_cast<const OpAttributes &>(repeat));
    bool isWanted = false;
    for (auto &body : repeat.bodies) {
      Block &inputs = carrying.addBody(graph), &weights = rest->addBody(graph);
      for (auto &argument : body->getArguments())
        copyValue(*argument, *inputs.addArgument(argument->type, argument->path));
      copy(*body, inputs, weights);
      isWanted |= !weights.empty();
      weights.append(std::make_unique<Op>(OpKind::Yield, repeat.loc));
    }
    if (isWanted)
      weight.append(std::move(rest));
  }

  void copyValue(const Value &from, Value &to) {
    to.constraint = from.constraint;
    to.sharding = from.sharding;
    to.loc = from.loc;
    to.primal = from.primal;
    copies[&from] = &to;
  }

  Value *getCopy(Value *value) const {
    Value *made = copies.lookup(value);
    return made ? made : value; // of forward
  }

  void addGradients(Op &update) {
    for (unsigned i = 1, end = update.getNumOperands(); i < end; ++i)
      update.addOperand(getCopy(update.getOperand(i)));
  }

  Graph &graph;
  Block &whole;
  llvm::DenseSet<const Value *> ofParameters;
  llvm::DenseSet<const Op *> ofWeights;
  llvm::DenseMap<const Value *, Value *> copies;
};

/// An update with the gradients of one phase only.
void dropGradients(Op &update, PhaseKind dropped) {
  llvm::SmallVector<Value *, 4> kept;
  for (Value *operand : update.getOperands())
    if (operand->getBlock()->getPhase() != dropped)
      kept.push_back(operand);
  update.clearOperands();
  for (Value *operand : kept)
    update.addOperand(operand);
}
} // namespace

void stage::splitBackward(Graph &graph, DiagnosticEngine &) {
  bool runs[numPhaseKinds] = {};
  for (const std::vector<Unit> &units : graph.pipeline.units)
    for (const Unit &unit : units)
      runs[unsigned(unit.kind)] = true;
  Block *whole = graph.findPhase(PhaseKind::Backward);
  if (!whole || !(runs[unsigned(PhaseKind::BackwardInput)] || runs[unsigned(PhaseKind::BackwardWeight)]))
    return;
  BackwardSplitter(graph, *whole).run();
  if (runs[unsigned(PhaseKind::Backward)])
    return;
  if (Block *step = graph.findPhase(PhaseKind::Step))
    Graph::walk(*step, [](Op &op) {
      if (op.kind == OpKind::Update)
        dropGradients(op, PhaseKind::Backward);
    });
  graph.erasePhase(PhaseKind::Backward);
}
