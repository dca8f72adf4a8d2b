//===- VerifyCaches.cpp - what units leave for later ones (V17) -----------===//
//
// A cache outlives the units that fill it. Every unit sees what those before it have left:
//
//   %keys = cache [g, 2] : bf16[B, M, E]                   two caches of M positions; a unit has number g
//   %all = append(%keys, %new) dim 1 : bf16[B, T, E]       %new, S long, is put at T - S, ..., T - 1
//   %all = append(%keys, %new) dim 1 rolling : ...         the cache keeps the last M; %all may be longer
//   write(%state, %next)                                   %next is all it has from then on
//   %part = store(%keys) dim 1 : bf16[B, N, E]             N positions are copied to the host; load: back
//
// What a value means must not depend on when it is read: a unit appends to a cache, or
// writes it, once, and reads the cache itself before that only. It fits in, in the units of
// every environment.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"

using namespace stage;

static bool fail(VerifierContext &context, const Op &op, const llvm::Twine &fault) {
  context.diags.report(op.loc, diag::IRBadCache) << VerifierContext::getName(op) << fault.str();
  return false;
}

/// Per environment, whether units of the op's phase have it; of all, if nobody says which units there are.
static std::vector<bool> findEnvironments(const Graph &graph, const Op &op) {
  std::vector<bool> runs(graph.pipeline.environments.size(), graph.pipeline.units.empty());
  for (const std::vector<Unit> &units : graph.pipeline.units)
    for (const Unit &unit : units)
      if (unit.kind == op.getBlock()->getPhase())
        runs[unit.environment] = true;
  return runs;
}

/// Calls `f` with the binding of each environment in which the op runs and words for it, until it gives a fault.
static std::string findInEnvironments(const Graph &graph, const Op &op,
                                      llvm::function_ref<std::string(const SizeBinding &, const std::string &)> f) {
  std::vector<bool> runs = findEnvironments(graph, op);
  for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number) {
    if (op.kind == OpKind::Append && !runs[number])
      continue;
    std::string units = number ? " in units with " + toString(graph.pipeline.environments[number]) : "";
    if (std::string fault = f(graph.getBinding(number), units); !fault.empty())
      return fault;
  }
  return "";
}

bool stage::verifyCache(VerifierContext &context, const Op &op) {
  if (context.graph.training)
    return fail(context, op, "a graph that trains has no caches");
  std::string fault =
      findInEnvironments(context.graph, op, [&](const SizeBinding &binding, const std::string &units) -> std::string {
        if (!op.entries)
          return "";
        SizeValue entries = evaluateCount(op.entries, binding), entry = evaluateCount(op.entry, binding);
        if (!entries || !entry || entry.value.num < entries.value.num)
          return "";
        return "there is no entry " + entry.value.str() + " of " + entries.value.str() + units;
      });
  return fault.empty() || fail(context, op, fault);
}

bool stage::verifyCacheUse(VerifierContext &context, const Op &op, llvm::function_ref<bool(const Op &)> isBehind) {
  const Value *cache = op.getOperand(0);
  if (!cache->getOp() || cache->getOp()->kind != OpKind::Cache)
    return fail(context, op, "operand 0 is not the result of a cache");
  const Block &block = *op.getBlock();
  for (auto [user, operand] : cache->getUses()) {
    if (user->getBlock() == &block && isBehind(*user))
      return fail(context, *user,
                  context.name(cache) + " has been " + (op.kind == OpKind::Append ? "appended to" : "written") +
                      " in this unit, so that it may not be used any more");
    if (user->getBlock() != &block && &user->getBlock()->getTop() == &block.getTop())
      return fail(context, op,
                  context.name(cache) + " is used elsewhere in the unit, so that what it has there is not clear");
  }
  return true;
}

bool stage::verifyCacheCopy(VerifierContext &context, const Op &op) {
  const Value *cache = op.getOperand(0);
  if (!cache->getOp() || cache->getOp()->kind != OpKind::Cache)
    return fail(context, op, "operand 0 is not the result of a cache");
  TensorType expected = cache->type;
  const TensorType &part = op.getResult()->type;
  if (op.dim >= expected.getNumDims())
    return fail(context, op, "the cache has no dim " + llvm::Twine(op.dim));
  if (part.getNumDims() == expected.getNumDims())
    expected.shape[op.dim] = part.shape[op.dim];
  unsigned errorsBefore = context.diags.getNumErrors();
  context.checkType(op.loc, "result of " + getName(op.kind), expected, part);
  return context.diags.getNumErrors() == errorsBefore;
}

bool stage::verifyAppend(VerifierContext &context, const Op &op) {
  const TensorType &cache = op.getOperand(0)->type, &added = op.getOperand(1)->type, &all = op.getResult()->type;
  if (op.dim >= cache.getNumDims())
    return fail(context, op, "the cache has no dim " + llvm::Twine(op.dim));
  for (const TensorType *type : {&added, &all}) {
    TensorType expected = cache;
    if (type->getNumDims() == cache.getNumDims())
      expected.shape[op.dim] = type->shape[op.dim];
    if (type == &added) // the cache quantizes it
      expected.quantization = added.quantization;
    unsigned errorsBefore = context.diags.getNumErrors();
    context.checkType(op.loc, type == &all ? "result of append" : "operand 1 of append", expected, *type);
    if (context.diags.getNumErrors() != errorsBefore)
      return false;
  }
  std::string fault =
      findInEnvironments(context.graph, op, [&](const SizeBinding &binding, const std::string &units) -> std::string {
        auto get = [&](const TensorType &type) { return evaluateCount(type.shape[op.dim].size, binding); };
        SizeValue capacity = get(cache), length = get(all), count = get(added);
        if (op.isRolling) {
          if (capacity && length && count && length.value.num - count.value.num > capacity.value.num)
            return length.value.str() + " positions of dim " + std::to_string(op.dim) + " are read of which " +
                   count.value.str() + " are new, but the cache keeps " + capacity.value.str() + units;
        } else if (capacity && length && length.value.num > capacity.value.num)
          return "it would have " + length.value.str() + " positions of dim " + std::to_string(op.dim) +
                 ", but there is room for " + capacity.value.str() + units;
        if (length && count && count.value.num > length.value.num)
          return count.value.str() + " positions are appended, more than the " + length.value.str() +
                 " that there are then" + units;
        return "";
      });
  if (!fault.empty())
    return fail(context, op, fault);
  const Sharding &sharding = op.getOperand(0)->sharding;
  if (op.dim < sharding.dims.size() &&
      !llvm::all_of(sharding.dims[op.dim], [&](const PlacedAxis &axis) { return axis.isCyclic() && !op.isRolling; }))
    return fail(context, op,
                "dim " + llvm::Twine(op.dim) + ", along which it is appended, is not dealt out in turn over " +
                    context.axes(sharding.dims[op.dim]));
  return true;
}
