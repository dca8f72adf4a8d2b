//===- WantedShardings.cpp - what users want of a value --------------------===//
#include "WantedShardings.h"
#include "stage/IR/graph/ShardingRules.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

bool stage::reducesNothing(const OpDef &def) {
  return def.isElementwise || (!def.isLookup && !def.getRouting() && !llvm::is_contained(def.reduced, true));
}

WantedShardings::WantedShardings(Graph &graph) {
  auto isFixed = [&](const Value *value) { return stationary.contains(value); };
  graph.walk([&](Op &op) { // what an op uses stands before it
    if (isState(op.kind) ||
        (op.kind == OpKind::Compute && op.getNumOperands() > 0 && llvm::all_of(op.getOperands(), isFixed)))
      for (auto &result : op.getResults())
        stationary.insert(result.get());
  });
}

static Wanted fromSharding(const Sharding &sharding) {
  Wanted wanted;
  for (const AxisList &list : sharding.dims)
    wanted.dims.push_back(list);
  wanted.notPartial = ~AxisSet(0);
  return wanted;
}

std::optional<Wanted> WantedShardings::getOwn(const Value &value) const {
  const Constraint &constraint = value.constraint;
  Wanted wanted;
  wanted.dims.resize(value.type.getNumDims());
  for (unsigned d = 0; d < constraint.dims.size(); ++d)
    if ((wanted.dims[d] = constraint.dims[d]))
      wanted.notPartial |= toSet(*wanted.dims[d]);
  wanted.replicated = constraint.replicated;
  wanted.notPartial |= constraint.replicated;
  if (constraint.partial)
    wanted.notPartial |= ~*constraint.partial;
  if (!wanted.empty())
    return wanted;
  // What is made of parameters only moves once per step, with the parameters' own gradients.
  if (!value.primal || isStationary(value.primal))
    return std::nullopt;
  wanted = fromSharding(value.primal->sharding.withoutPartial());
  wanted.notPartial &= ~copies.lookup(value.primal);
  return wanted;
}

void WantedShardings::noteCopies(const Op &op, AxisSet axes) {
  if (reducesNothing(*op.def) && !op.def->isSum)
    for (const Value *operand : op.getOperands())
      axes |= copies.lookup(operand);
  if (axes)
    for (auto &result : op.getResults())
      copies[result.get()] = axes & ~result->sharding.getSharded() & ~result->sharding.partial;
}

void WantedShardings::nameApart(Graph &graph, Value &gradient) {
  if (!gradient.primal || gradient.getUses().empty())
    return;
  std::optional<Wanted> own = getOwn(gradient);
  if (!own || own->dims == fromSharding(gradient.sharding).dims)
    return;
  // One for each phase that uses it: what only the weights' half reads goes nowhere before.
  llvm::MapVector<const Block *, llvm::SmallVector<std::pair<Op *, unsigned>, 4>> uses;
  for (auto [user, operand] : gradient.getUses())
    uses[&user->getBlock()->getTop()].push_back({user, operand});
  Op &repeat = *gradient.getOp();
  for (auto &[phase, users] : uses) {
    auto name = std::make_unique<Op>(OpKind::Compute, repeat.loc);
    name->def = graph.defs.getSum(gradient.type.getNumDims(), 1);
    name->scope = repeat.scope;
    name->extents.assign(gradient.type.shape.begin(), gradient.type.shape.end());
    name->addOperand(&gradient);
    Value *named = name->addResult(gradient.type, gradient.path);
    named->primal = gradient.primal;
    named->constraint = gradient.constraint;
    wanted[named] = *own;
    for (auto [user, operand] : users)
      user->setOperand(operand, named);
    if (phase == &repeat.getBlock()->getTop())
      repeat.getBlock()->insertAfter(&repeat, std::move(name));
    else
      for (Block &block : graph.getPhases())
        if (&block == phase)
          block.insertBefore(block.begin()->get(), std::move(name));
  }
}

void WantedShardings::visitBlock(const Block &block) {
  for (auto &op : llvm::reverse(block))
    for (auto &value : op->getResults()) {
      std::optional<Wanted> own = getOwn(*value);
      if (!own)
        own = usersAgree(*value);
      if (own)
        wanted[value.get()] = *own;
    }
}

std::optional<Wanted> WantedShardings::usersAgree(const Value &value) const {
  if (isState(value.getOp()->kind))
    return std::nullopt; // compute shardings of parameters are the strategy's to say
  std::optional<Wanted> agreed;
  for (auto [user, operand] : value.getUses()) {
    if (user->kind == OpKind::Accumulate)
      return std::nullopt;
    if (&user->getBlock()->getTop() != &value.getBlock()->getTop())
      continue; // what backward needs of a forward value is no constraint on it
    std::optional<Wanted> here = throughUser(*user, operand);
    if (!here || (agreed && !(*agreed == *here)))
      return std::nullopt;
    if (agreed)
      here->bySum |= agreed->bySum;
    agreed = here;
  }
  return agreed;
}

std::optional<Wanted> WantedShardings::throughUser(const Op &user, unsigned operand) const {
  if (user.kind == OpKind::Yield)
    return fromSharding(user.getBlock()->getArgument(operand)->sharding);
  if (user.kind == OpKind::Repeat)
    return getOwn(*user.bodies.front()->getArgument(operand));
  if (user.kind != OpKind::Compute)
    return std::nullopt;
  const OpDef &def = *user.def;
  if (!reducesNothing(def) && !def.isSum && !def.isLookup)
    return std::nullopt;
  const Wanted *found = find(*user.getResult());
  if (!found)
    return std::nullopt;
  const Wanted &result = *found;
  Wanted mapped;
  bool takesPartial = def.isElementwise || def.isSum || def.isLookup;
  mapped.notPartial = takesPartial ? result.notPartial : ~AxisSet(0);
  mapped.replicated = result.replicated;
  mapped.bySum = def.isSum || (def.isElementwise && result.bySum);
  for (unsigned index : def.operands[operand].indices) {
    auto &dim = mapped.dims.emplace_back();
    unsigned carrier = def.getCarrier(index);
    for (unsigned d = 0; d < result.dims.size(); ++d) {
      unsigned other = def.results.front().indices[d];
      if (def.getCarrier(other) != carrier)
        continue;
      dim = result.dims[d];
      if (dim && (index != carrier || other != carrier))
        dim = getLeadingAxes(user.getBlock()->getGraph(), user.extents[carrier].size, *dim);
    }
    if (!def.shardable[index])
      dim.emplace(); // it is needed whole
    else if (std::optional<AxisList> decided = getDecidedAxes(user, carrier))
      dim = *decided;
  }
  return mapped.empty() ? std::nullopt : std::optional<Wanted>(mapped);
}
