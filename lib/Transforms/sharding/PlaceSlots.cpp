//===- PlaceSlots.cpp - where what is routed stands (law L2) --------------===//
#include "PlaceSlots.h"
#include "stage/IR/graph/Identity.h"
#include "stage/Transforms/Diagnostics.h"

using namespace stage;

/// The integers by which an op routes, whatever other name they have. (A backward has what its op was given.)
static const Value *getIntegers(const Op &op) {
  const Value *value = op.getOperand(op.def->routing->operand);
  while (value->getOp() && computesNothing(*value->getOp()))
    value = value->getOp()->getOperand(0);
  return value;
}

/// The op that has decided where the tokens of this one are; null if this one is the first.
const Op *SlotPlacer::findFirst(const Op &op) const {
  return op.def->vjpOf ? op.origin : firstByIntegers.lookup(getIntegers(op));
}

void SlotPlacer::forEachToken(const Op &op, llvm::function_ref<void(unsigned, const AxisList &)> f) {
  const Op *first = findFirst(op);
  if (!first)
    return;
  const Routing &routing = *op.def->getRouting(), &before = *first->def->getRouting();
  for (unsigned i = 0; i < routing.tokens.size(); ++i) {
    unsigned index = routing.tokens[i];
    const AxisList &axes = first->indexAxes[before.tokens[i]];
    if (index < op.indexConstraint.size() && op.indexConstraint[index] && *op.indexConstraint[index] != axes) {
      DiagnosticBuilder error = diags.report(op.loc, diag::RoutedElsewhere)
                                << op.def->name << op.def->indices[index].name << first->def->name;
      error.note(first->loc, diag::RoutedFirst) << first->def->name;
    }
    f(index, axes);
  }
}

void SlotPlacer::place(Op &op) {
  const Routing &routing = *op.def->getRouting();
  AxisList &slots = op.indexAxes[routing.slot];
  if (const Op *first = findFirst(op)) {
    slots = first->indexAxes[first->def->getRouting()->slot];
    return;
  }
  AxisSet open = 0;
  for (unsigned token : routing.tokens)
    open |= toSet(op.indexAxes[token]);
  auto append = [&](AxisId axis) {
    if (open >> axis & 1)
      slots.push_back(PlacedAxis(axis));
    open &= ~(AxisSet(1) << axis);
  };
  AxisList last = findWanted(op);
  // Where all ranks have the tokens, each fills the slots of its own part of the target.
  AxisSet used = 0;
  for (const AxisList &axes : op.indexAxes)
    used |= toSet(axes);
  if (routing.toSlots && !(used & toSet(last)))
    op.indexAxes[routing.target] = last;
  slots.clear();
  for (unsigned token : routing.tokens)
    for (AxisId axis : op.indexAxes[token])
      if (!llvm::is_contained(last, axis))
        append(axis);
  llvm::for_each(last, append);
  noteSources(op);
  if (!op.def->vjpOf)
    firstByIntegers[getIntegers(op)] = &op;
}

/// Where a load says how full slots are: into how many parts of the tokens it is.
void SlotPlacer::noteSources(const Op &op) {
  const Routing &routing = *op.def->getRouting();
  for (SlotLoad &load : graph.mesh.getSlotLoads())
    if (routing.toSlots && !op.def->vjpOf && load.slots == op.extents[routing.slot].dim)
      load.sources = graph.mesh.getGroupSymbol(graph.sizes, op.indexAxes[routing.slot]);
}

/// The axes that are wanted on the target where what is routed is used, or comes from, outer first.
AxisList SlotPlacer::findWanted(const Op &op) const {
  const OpDef &def = *op.def;
  unsigned target = def.getRouting()->target;
  if (!def.getRouting()->toSlots) {
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      for (unsigned d = 0; d < def.operands[i].indices.size(); ++d)
        if (def.operands[i].indices[d] == target)
          return op.getOperand(i)->sharding.dims[d];
    return {};
  }
  const Value &result = *op.getResult();
  auto indices = llvm::makeArrayRef(def.results.front().indices);
  unsigned dim = llvm::find(indices, target) - indices.begin();
  if (dim == indices.size())
    return {};
  if (const Wanted *found = wanted.find(result); found && dim < found->dims.size() && found->dims[dim])
    return *found->dims[dim];
  if (dim < result.constraint.floors.size() && !result.constraint.floors[dim].empty())
    return result.constraint.floors[dim];
  for (auto [user, operand] : result.getUses())
    if (std::optional<AxisList> axes = findWantedByUser(*user, operand, dim))
      return *axes;
  return {};
}

/// The axes that a parameter has on the index of a dim, if the user of the dim takes one that has it.
std::optional<AxisList> SlotPlacer::findWantedByUser(const Op &user, unsigned operand, unsigned dim) const {
  if (user.kind != OpKind::Compute)
    return std::nullopt;
  unsigned index = user.def->operands[operand].indices[dim];
  for (unsigned i = 0; i < user.getNumOperands(); ++i) {
    const Value *other = user.getOperand(i);
    const Wanted *own = wanted.isStationary(other) ? wanted.find(*other) : nullptr;
    for (unsigned d = 0; own && d < own->dims.size(); ++d)
      if (user.def->operands[i].indices[d] == index && own->dims[d])
        return *own->dims[d];
  }
  return std::nullopt;
}
