//===- RingSteps.cpp - pieces that go from rank to rank -------------------===//
#include "RingSteps.h"
#include "stage/IR/graph/Costs.h"

using namespace stage;

RingSteps::RingSteps(Graph &graph, llvm::ArrayRef<PlacedAxis> axes, Op &where, const Op &like)
    : graph(graph), axes(axes.begin(), axes.end()), where(where), like(like) {
  for (AxisId axis : axes)
    numSteps *= graph.mesh[axis].size;
}

AxisId RingSteps::getHop(unsigned step) const {
  size_t number = axes.size() - 1;
  for (; number > 0 && step % graph.mesh[axes[number]].size == 0; --number)
    step /= graph.mesh[axes[number]].size;
  return axes[number];
}

void RingSteps::rotate(llvm::MutableArrayRef<PlacedAxis> placed, AxisId axis, uint32_t hops) const {
  uint32_t size = graph.mesh[axis].size;
  for (PlacedAxis &place : placed)
    if (place.id == axis)
      place.rotation = (place.rotation + size - hops % size) % size;
}

Op *RingSteps::insert(std::unique_ptr<Op> op) {
  inserted.push_back(op.get());
  if (!last)
    return where.getBlock()->insertBefore(&where, std::move(op));
  return last = where.getBlock()->insertAfter(last, std::move(op));
}

Value *RingSteps::addResult(Op &op, const Value &similar, const Sharding &sharding) const {
  Value *result = op.addResult(similar.type);
  result->loc = similar.loc;
  result->sharding = sharding;
  return result;
}

void RingSteps::setStep(llvm::ArrayRef<Value *> awaited) {
  step.clear();
  for (Value *value : awaited)
    if (value->getOp() && value->getBlock() == where.getBlock() && hasNode(graph, *value->getOp()) &&
        llvm::none_of(step, [&](const OrderEdge &edge) { return edge.value->getOp() == value->getOp(); }))
      step.push_back({value});
}

void RingSteps::setFirstStep(llvm::ArrayRef<Value *> operands, Value *computedBefore) {
  setStep(operands);
  if (step.empty() && computedBefore && isOfSameTurn(*computedBefore->getOp()))
    setStep({computedBefore});
}

/// Whether the ring runs behind an op wherever that is: in backward, in the same iteration, or on the one stage that
/// there is. Forward waits for nothing but its operands.
bool RingSteps::isOfSameTurn(const Op &before) const {
  const Block *block = where.getBlock();
  return before.getBlock() == block && block->getTop().getPhase() != PhaseKind::Forward &&
         (block->getParent() || graph.pipeline.repeats.empty());
}

Value *RingSteps::send(Value *value, AxisId axis, uint32_t hops) {
  auto op = std::make_unique<Op>(OpKind::Permute, like.loc);
  op->scope = like.scope;
  op->axes.emplace_back(axis);
  op->shift = hops;
  op->addOperand(value);
  op->after = step;
  Sharding sharding = value->sharding;
  for (AxisList &placed : sharding.dims)
    rotate(placed, axis, hops);
  addResult(*op, *value, sharding);
  return insert(std::move(op))->getResult();
}

Value *RingSteps::add(llvm::ArrayRef<Value *> addends) {
  const Value &first = *addends.front();
  auto op = std::make_unique<Op>(OpKind::Compute, like.loc);
  op->def = graph.defs.getSum(first.type.getNumDims(), addends.size());
  op->scope = like.scope;
  op->isRecomputed = like.isRecomputed;
  op->extents.assign(first.type.shape.begin(), first.type.shape.end());
  op->indexAxes.assign(first.sharding.dims.begin(), first.sharding.dims.end());
  for (Value *addend : addends)
    op->addOperand(addend);
  addResult(*op, first, first.sharding);
  return insert(std::move(op))->getResult();
}

/// Not only added to gradients of parameters.
static bool isUsedInOps(const std::unique_ptr<Value> &value) {
  return llvm::any_of(value->getUses(),
                      [](const std::pair<Op *, unsigned> &use) { return !isAddition(use.first->kind); });
}

void ComputedBefore::visit(const Op &op) {
  if (op.kind == OpKind::Compute && !op.stream && hasNode(graph, op) && llvm::any_of(op.getResults(), isUsedInOps))
    value = op.getResult();
}
