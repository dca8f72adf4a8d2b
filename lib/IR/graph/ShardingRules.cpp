//===- ShardingRules.cpp - what an op makes and needs (law L4) ------------===//
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/graph/Identity.h"

using namespace stage;

static AxisSet getIndexAxes(const Op &op) {
  AxisSet set = 0;
  for (const AxisList &list : op.indexAxes)
    set |= toSet(list);
  return set;
}

/// What a strategy says of an index of the op itself.
static const std::optional<AxisList> *getConstraint(const Op &op, unsigned index) {
  return index < op.indexConstraint.size() && op.indexConstraint[index] ? &op.indexConstraint[index] : nullptr;
}

std::optional<AxisList> stage::getDecidedAxes(const Op &op, unsigned index) {
  if (auto *said = getConstraint(op, index))
    return *said;
  if (!op.origin || index >= op.origin->indexAxes.size())
    return std::nullopt;
  AxisList axes = op.origin->indexAxes[index];
  if (axes.empty())
    return getConstraint(*op.origin, index) ? std::optional<AxisList>(axes) : std::nullopt;
  // An axis that the strategy puts elsewhere in the gradient is not here.
  AxisSet elsewhere = 0;
  for (const auto &said : op.indexConstraint)
    if (said)
      elsewhere |= toSet(*said);
  llvm::erase_if(axes, [&](AxisId axis) { return elsewhere >> axis & 1; });
  return axes;
}

AxisList stage::getLeadingAxes(const Graph &graph, Size extent, llvm::ArrayRef<PlacedAxis> axes) {
  SizeValue size = evaluateCount(extent, graph.binding);
  AxisList leading;
  __int128 parts = 1;
  bool isListed = false;
  for (const PlacedAxis &axis : axes) {
    isListed |= axis.isListed(); // from there on its blocks are as long as the table says
    if (isListed) {
      leading.push_back(axis);
      continue;
    }
    parts *= __int128(graph.mesh[axis].size) * (axis.isMirrored() ? 2 : 1);
    if (!size || size.value.num % parts != 0)
      break;
    leading.push_back(axis);
  }
  return leading;
}

AxisSet stage::getRoutedAxes(const Op &op) {
  const Routing *routing = op.def->getRouting();
  return routing && routing->slot < op.indexAxes.size() ? toSet(op.indexAxes[routing->slot]) : 0;
}

/// Whether what a rank has of an index that a result lacks is all that the result is made of: of slots those of its
/// tokens, and the other way round.
static bool isOwnRouting(const OpDef &def, unsigned index, llvm::ArrayRef<unsigned> kept) {
  const Routing *routing = def.getRouting();
  return routing && (index == routing->slot ||
                     (llvm::is_contained(routing->tokens, index) && llvm::is_contained(kept, routing->slot)));
}

AxisSet stage::getPairedAxes(const Op &op) {
  AxisSet once = 0, paired = 0;
  const Routing *routing = op.indexAxes.empty() ? nullptr : op.def->getRouting();
  for (unsigned index = 0; index < op.indexAxes.size(); ++index) {
    if (op.def->getCarrier(index) != index ||
        (routing && routing->slot == index)) // slots have the axes of their tokens
      continue;
    paired |= once & toSet(op.indexAxes[index]);
    once |= toSet(op.indexAxes[index]);
  }
  return paired;
}

AxisSet stage::getAxesTwice(const Op &op) {
  AxisSet twice = 0;
  auto look = [&](llvm::ArrayRef<unsigned> indices) {
    AxisSet once = 0;
    for (unsigned index : indices) {
      twice |= once & toSet(op.indexAxes[index]);
      once |= toSet(op.indexAxes[index]);
    }
  };
  if (!getPairedAxes(op))
    return 0;
  for (const OperandInfo &operand : op.def->operands)
    look(operand.indices);
  for (const ResultInfo &result : op.def->results)
    look(result.indices);
  return twice;
}

/// Axes over which an operand is a sum that is not complete.
static AxisSet getSumAxes(const Op &op, unsigned operand) {
  const Sharding &sharding = op.getOperand(operand)->sharding;
  return sharding.reduce == ReduceKind::Sum ? sharding.partial : AxisSet(0);
}

/// The partial state of its operands that one of several products hands on.
static AxisSet getPassedBy(const Op &op, const ProductTerm &term) {
  AxisSet passed = 0, once = 0, twice = 0, split = 0;
  for (unsigned operand : term.operands) {
    passed |= getSumAxes(op, operand);
    AxisSet partial = op.getOperand(operand)->sharding.partial;
    twice |= once & partial;
    once |= partial;
  }
  for (unsigned index : listIndices(*op.def, term))
    split |= toSet(op.indexAxes[index]);
  return passed & ~twice & ~split;
}

/// Axes over which one of several products is partial: those of indices that it sums up, if the result has none of a
/// pair, and what it hands on. What others range over does not concern it.
static AxisSet getPartial(const Op &op, const ProductTerm &term) {
  AxisSet once = 0, paired = 0, keptAxes = 0, summed = 0;
  llvm::SmallVector<unsigned, 4> kept = op.def->expand(op.def->results[term.result].indices);
  for (unsigned index : listIndices(*op.def, term)) {
    AxisSet axes = toSet(op.indexAxes[index]);
    paired |= once & axes;
    once |= axes;
    (llvm::is_contained(kept, index) ? keptAxes : summed) |= axes;
  }
  return (summed & ~(paired & keptAxes)) | getPassedBy(op, term);
}

bool stage::areTermsAlike(const Op &op, unsigned result) {
  std::optional<AxisSet> partial;
  for (const ProductTerm &term : op.def->terms)
    if (term.result == result && partial.value_or(getPartial(op, term)) != getPartial(op, term))
      return false;
    else if (term.result == result)
      partial = getPartial(op, term);
  return true;
}

/// Gradients that the backward of an op with several results is given stand behind what was saved.
static bool isGivenGradient(const OpDef &def, unsigned operand) {
  return def.vjpOf && operand + def.vjpGradients.size() >= def.operands.size();
}

/// Axes over which a gradient is an addend of what others give: those of indices that it lacks and they have.
static AxisSet getAddedAxes(const Op &op, unsigned operand) {
  const OpDef &def = *op.def;
  AxisSet axes = 0;
  if (!isGivenGradient(def, operand) || def.vjpGradients.size() < 2)
    return axes;
  llvm::SmallVector<unsigned, 4> indices = def.expand(def.operands[operand].indices);
  for (unsigned index = 0; index < op.indexAxes.size(); ++index)
    if (!op.indexAxes[index].empty() && isOfSomeResults(def, index) && !llvm::is_contained(indices, index))
      axes |= toSet(op.indexAxes[index]);
  return axes;
}

bool stage::areAddendsOver(const Op &op, unsigned index, AxisId axis) {
  const OpDef &def = *op.def;
  if (!def.vjpOf || !def.terms.empty() || !isOfSomeResults(def, index))
    return true;
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    if (isGivenGradient(def, i) && !llvm::is_contained(def.expand(def.operands[i].indices), index) &&
        !(getSumAxes(op, i) >> axis & 1))
      return false;
  return true;
}

AxisSet stage::getPassedPartial(const Op &op) {
  const OpDef &def = *op.def;
  AxisSet passed = 0;
  for (const ProductTerm &term : def.terms)
    passed |= getPassedBy(op, term);
  if (!def.terms.empty())
    return passed;
  auto sums = [&](unsigned operand) { return getSumAxes(op, operand); };
  if (def.isSum) {
    passed = ~AxisSet(0);
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      passed &= sums(i);
  } else {
    AxisSet once = 0, twice = 0;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      AxisSet partial = op.getOperand(i)->sharding.partial;
      twice |= once & partial;
      once |= partial;
      if (i < def.linearIn.size() && def.linearIn[i])
        passed |= sums(i);
    }
    passed &= ~twice; // a product of two partial sums is no partial product
  }
  return passed & ~getIndexAxes(op);
}

Sharding stage::getNaturalSharding(const Op &op, unsigned resultNumber) {
  const OpDef &def = *op.def;
  const ResultInfo &result = def.results[resultNumber];
  Sharding sharding;
  for (unsigned index : result.indices)
    sharding.dims.push_back(op.indexAxes[index]);
  if (!def.terms.empty()) {
    sharding.partial = ~AxisSet(0);
    for (const ProductTerm &term : def.terms)
      if (term.result == resultNumber)
        sharding.partial &= getPartial(op, term);
    return sharding;
  }
  llvm::SmallVector<unsigned, 4> kept = def.expand(result.indices);
  AxisSet keptAxes = 0;
  for (unsigned index : kept)
    keptAxes |= toSet(op.indexAxes[index]);
  // A result with neither index of a pair is a sum over both.
  AxisSet paired = getPairedAxes(op) & keptAxes;
  for (unsigned index = 0; index < def.indices.size(); ++index)
    if (!op.indexAxes[index].empty() && !def.indices[index].isCompound() && !llvm::is_contained(kept, index) &&
        !isOwnRouting(def, index, kept) && (def.vjpOf || result.extra || !isOfSomeResults(def, index))) {
      sharding.partial |= toSet(op.indexAxes[index]) & ~paired;
      sharding.reduce = def.reduceKind.empty() ? ReduceKind::Sum : def.reduceKind[index];
    }
  if (!result.extra)
    sharding.partial |= getPassedPartial(op);
  if (isCast(op)) // what flat storage has
    sharding.flat = op.getOperand(0)->sharding.flat;
  return sharding;
}

Sharding stage::getAppendedSharding(const Op &op) {
  bool hasOthers = op.getResult()->type.shape[op.dim] != op.getOperand(1)->type.shape[op.dim];
  return getNeededSharding(op, hasOthers ? 0 : 1);
}

Sharding stage::getNeededSharding(const Op &op, unsigned operand) {
  const Value *value = op.getOperand(operand);
  switch (op.kind) {
  case OpKind::Compute: {
    Sharding needed;
    for (unsigned index : op.def->operands[operand].indices)
      needed.dims.push_back(op.indexAxes[index]);
    if (value->sharding.partial) // else all operands of a sum would be looked at for each of them
      needed.partial = value->sharding.partial & (getPassedPartial(op) | getAddedAxes(op, operand));
    for (const ProductTerm &term : op.def->terms)
      if (needed.partial && llvm::is_contained(term.operands, operand))
        needed.partial &= getPassedBy(op, term);
    if (isCast(op))
      needed.flat = value->sharding.flat;
    return needed;
  }
  case OpKind::Repeat:
    return op.bodies.front()->getArgument(operand)->sharding; // as in all cases
  case OpKind::Yield:
    return op.getBlock()->getArgument(operand)->sharding;
  case OpKind::Return:
    return value->sharding.withoutPartial();
  case OpKind::Update: // of a shard, if it has a result
    if (op.clips && operand + 1 == op.getNumOperands())
      return Sharding();
    return op.getNumResults() && operand > 0 ? op.getResult()->sharding : op.getOperand(0)->sharding;
  case OpKind::Append: {
    Sharding needed = op.getOperand(0)->sharding;
    if (operand && op.dim < needed.dims.size())
      needed.dims[op.dim].clear(); // of new positions a rank takes those that it keeps
    return needed;
  }
  case OpKind::Write:
    return op.getOperand(0)->sharding;
  case OpKind::Offload:
  case OpKind::Fetch:
    return op.getResult(operand)->sharding; // a rank copies what it has
  default:
    return value->sharding;
  }
}
