//===- Layout.cpp - where each op's node is in a trace --------------------===//
#include "Layout.h"
#include "stage/IR/Costs.h"

using namespace stage;

NodeClass stage::classifyNode(const Graph &graph, const Op &op) {
  switch (op.kind) {
  case OpKind::Compute:
  case OpKind::Update:
    return getLocalCost(graph, op).bytes.isConstant(0) ? NodeClass::None : NodeClass::Compute;
  case OpKind::AllGather:
  case OpKind::AllReduce:
  case OpKind::ReduceScatter:
  case OpKind::AllToAll:
    return NodeClass::Collective;
  default:
    return NodeClass::None;
  }
}

Layout::Layout(const Graph &graph, llvm::ArrayRef<ProgramItem> items) {
  for (const ProgramItem &item : items) {
    Segment segment;
    segment.item = &item;
    segment.start = numNodes;
    switch (item.kind) {
    case ProgramItem::Kind::Op:
      straight[item.op] = true;
      if (classifyNode(graph, *item.op) != NodeClass::None)
        segment.ops.push_back(item.op);
      segment.perIteration = segment.ops.size();
      break;
    case ProgramItem::Kind::Loop:
      for (auto &op : *item.op->body)
        if (classifyNode(graph, *op) != NodeClass::None)
          segment.ops.push_back(op.get());
      segment.perIteration = segment.ops.size();
      segment.iterations = item.end - item.begin;
      loops[item.op->loop] = segments.size();
      break;
    case ProgramItem::Kind::Recv:
      for (unsigned i = 0; i < item.values.size(); ++i)
        recvs[item.values[i]] = numNodes + i;
      segment.perIteration = item.values.size();
      break;
    case ProgramItem::Kind::Send:
      segment.perIteration = item.values.size();
      break;
    }
    for (unsigned i = 0; i < segment.ops.size(); ++i)
      positions[segment.ops[i]] = {unsigned(segments.size()), i};
    numNodes += segment.perIteration * segment.iterations;
    segments.push_back(std::move(segment));
  }
}

const Segment *Layout::findLoop(unsigned loop) const {
  auto it = loops.find(loop);
  return it == loops.end() ? nullptr : &segments[it->second];
}

std::optional<std::pair<const Segment *, unsigned>> Layout::find(const Op *op) const {
  auto it = positions.find(op);
  if (it == positions.end())
    return std::nullopt;
  return std::pair(&segments[it->second.first], it->second.second);
}

bool Layout::runs(const Op *op, int64_t iteration) const {
  const Op *loop = op->getBlock()->getParent();
  if (!loop)
    return straight.count(op);
  const Segment *segment = findLoop(loop->loop);
  return segment && iteration >= segment->item->begin && iteration < segment->item->end;
}

std::optional<unsigned> Layout::findRecv(const Value *value) const {
  auto it = recvs.find(value);
  return it == recvs.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

static bool isIn(const Value *value, const Block &top) {
  const Block *block = value->getBlock();
  while (block->getParent())
    block = block->getParent()->getBlock();
  return block == &top;
}

/// How many iterations of a loop segment run before `iteration`.
static uint64_t getRun(const Segment &segment, int64_t iteration) {
  return segment.item->op->reverse ? segment.item->end - 1 - iteration : iteration - segment.item->begin;
}

void Producers::find(const Value *value, const PlacedUnit &unit, int64_t iteration,
                     llvm::SmallVectorImpl<uint64_t> &ids) const {
  // A forward value outside of forward is that of the partner unit.
  if (unit.partner && isIn(value, graph.forward))
    return find(value, *unit.partner, iteration, ids);
  if (unit.isStep && !isIn(value, graph.step)) {
    if (!value->getOp() || value->getOp()->kind != OpKind::Accumulate)
      return; // parameters are there
    // The buffer is complete when the last contribution of this stage is in it.
    for (Op *accumulate : getAccumulations(value))
      for (const PlacedUnit &last : lastBackward)
        if (last.layout && last.layout->runs(accumulate, iteration))
          find(accumulate->getOperand(0), last, iteration, ids);
    return;
  }
  if (value->isArgument())
    return findArgument(value, unit, iteration, ids);
  const Op *op = value->getOp();
  if (op->kind == OpKind::Repeat)
    return findLoopResult(value, unit, ids);
  if (auto place = unit.layout->find(op)) {
    auto [segment, position] = *place;
    uint64_t run = segment->item->kind == ProgramItem::Kind::Loop ? getRun(*segment, iteration) : 0;
    ids.push_back(unit.base + segment->start + run * segment->perIteration + position);
    return;
  }
  // No node: whatever it waits for. A param, an input or a constant waits for nothing.
  if (op->kind == OpKind::Accumulate)
    return find(op->getOperand(0), unit, iteration, ids);
  for (const Value *operand : op->getOperands())
    find(operand, unit, iteration, ids);
}

void Producers::findArgument(const Value *value, const PlacedUnit &unit, int64_t iteration,
                             llvm::SmallVectorImpl<uint64_t> &ids) const {
  Op *loop = value->getBlock()->getParent();
  const Segment *segment = unit.layout->findLoop(loop->loop);
  if (segment && iteration >= 0) {
    int64_t previous = loop->reverse ? iteration + 1 : iteration - 1;
    if (previous >= segment->item->begin && previous < segment->item->end)
      return find(loop->body->getTerminator()->getOperand(value->getNumber()), unit, previous, ids);
  }
  if (auto recv = unit.layout->findRecv(value)) {
    ids.push_back(unit.base + *recv);
    return;
  }
  find(loop->getOperand(value->getNumber()), unit, -1, ids);
}

void Producers::findLoopResult(const Value *value, const PlacedUnit &unit,
                               llvm::SmallVectorImpl<uint64_t> &ids) const {
  Op *loop = value->getOp();
  if (auto recv = unit.layout->findRecv(value)) {
    ids.push_back(unit.base + *recv);
    return;
  }
  const Segment *segment = unit.layout->findLoop(loop->loop);
  if (segment && segment->iterations > 0) {
    int64_t last = loop->reverse ? segment->item->begin : segment->item->end - 1;
    return find(loop->body->getTerminator()->getOperand(value->getNumber()), unit, last, ids);
  }
  find(loop->getOperand(value->getNumber()), unit, -1, ids);
}
