//===- TensorTracker.cpp - which tensors a node reads and writes ----------===//
#include "TensorTracker.h"
#include "stage/IR/Costs.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

/// A node reads the value. What its maker adds to a gradient's buffer is no tensor, and what is returned (the loss) is
/// read by nobody.
bool TensorTracker::isRead(const Value *value) const {
  return !getFusedAccumulation(graph, value) &&
         llvm::any_of(value->getUses(), [&](const std::pair<Op *, unsigned> &use) {
           return use.first->kind == OpKind::Slice ? isRead(use.first->getResult())
                                                   : use.first->kind != OpKind::Return;
         });
}

bool TensorTracker::isInPlace(const Op &op, const PlacedUnit &unit, int64_t iteration) const {
  if (op.kind != OpKind::AllReduce)
    return false;
  const Value *operand = op.getOperand(0);
  const Op *producer = operand->getOp();
  if (!producer || producer->getBlock() != op.getBlock())
    return producer && producer->kind == OpKind::Accumulate;
  return unit.layout->find(producer, iteration) && operand->getUses().size() == 1;
}

std::string TensorTracker::getName(char kind, const Value *value, int64_t iteration) {
  unsigned number = numbers.try_emplace(value, numbers.size()).first->second;
  std::string name = kind + std::to_string(number);
  return iteration < 0 ? name : name + "." + std::to_string(iteration);
}

std::string TensorTracker::getName(const Value *value, const PlacedUnit &unit, int64_t iteration) {
  return getName('t', value, iteration) + " " + unit.getName();
}

uint64_t TensorTracker::getBytes(const Value *value) {
  auto [it, isNew] = sizes.try_emplace(value, 0);
  if (isNew)
    it->second = nodeSizes.evaluate(getLocalBytes(graph.sizes, graph.mesh, value->type, value->sharding), *value);
  return it->second;
}

void TensorTracker::addInput(std::string name, uint64_t bytes) {
  if (llvm::any_of(inputs, [&](const TensorUse &known) { return known.name == name; }))
    return; // linear(%x, %x)
  names.push_back(std::move(name));
  inputs.push_back({names.back(), bytes});
}

void TensorTracker::addOutput(std::string name, uint64_t bytes) {
  names.push_back(std::move(name));
  outputs.push_back({names.back(), bytes});
}

void TensorTracker::readOrigin(const Origin &origin) {
  const Value *value = origin.value;
  switch (origin.kind) {
  case Origin::Kind::Source:
    if (value->getOp()->kind == OpKind::Param)
      addInput(getName('p', value, origin.iteration), getBytes(value));
    else if (value->getOp()->kind == OpKind::Input)
      addInput(getName('i', value, -1) + " " + std::to_string(origin.unit->microbatch), getBytes(value));
    return;
  case Origin::Kind::Buffer: {
    // Accumulations of one parameter, type and sharding share a buffer.
    const Value *buffer = buffers.getFirst(value)->getResult();
    return addInput(getName('g', buffer, origin.iteration), getBytes(buffer));
  }
  case Origin::Kind::Node:
    if (isInPlace(*value->getOp(), *origin.unit, origin.iteration))
      return read(value->getOp()->getOperand(0), *origin.unit, origin.iteration);
    [[fallthrough]];
  case Origin::Kind::Recv:
    return addInput(getName(value, *origin.unit, origin.iteration), getBytes(value));
  }
}

void TensorTracker::read(const Value *value, const PlacedUnit &unit, int64_t iteration) {
  producers.visit(value, unit, iteration, [&](const Origin &origin) { readOrigin(origin); });
}

/// All states of a parameter as one tensor. They are sharded as the gradient that updates it.
void TensorTracker::readStates(const Op &update, const PlacedUnit &unit, int64_t iteration) {
  const Value *param = update.getOperand(0), *gradient = update.getOperand(1);
  int64_t perElement = 0;
  for (auto &[name, type] : graph.optimizer.getStates(param->type.dtype))
    perElement += getByteSize(type);
  if (!perElement)
    return;
  Size elements = getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding);
  if (!param->getBlock()->getParent())
    iteration = -1;
  addInput(getName('s', param, iteration), nodeSizes.evaluate(elements * perElement, *param));
}

void TensorTracker::clear() {
  names.clear();
  inputs.clear();
  outputs.clear();
}

void TensorTracker::trackOp(const Op &op, const PlacedUnit &unit, int64_t iteration, NodeFields &node) {
  clear();
  bool isAddition = op.kind == OpKind::Accumulate;
  for (const Value *operand : isAddition ? op.getOperands().take_front() : op.getOperands())
    read(operand, unit, iteration);
  for (auto &result : op.getResults()) {
    if (isAddition)
      read(result.get(), unit, iteration);
    else if (const Op *accumulation = getFusedAccumulation(graph, result.get()))
      read(accumulation->getResult(), unit, iteration);
    else if (isRead(result.get()) && !isInPlace(op, unit, iteration))
      addOutput(getName(result.get(), unit, op.getBlock()->getParent() ? iteration : -1), getBytes(result.get()));
  }
  if (op.kind == OpKind::Update)
    readStates(op, unit, iteration);
  node.inputs = llvm::ArrayRef<TensorUse>(inputs);
  node.outputs = llvm::ArrayRef<TensorUse>(outputs);
}

void TensorTracker::trackMessage(const Value *value, const PlacedUnit &unit, int64_t iteration, NodeFields &node) {
  clear();
  if (node.type == ChakraNodeType::CommSend)
    read(value, unit, iteration);
  else
    addOutput(getName(value, unit, -1), getBytes(value));
  node.inputs = llvm::ArrayRef<TensorUse>(inputs);
  node.outputs = llvm::ArrayRef<TensorUse>(outputs);
}
