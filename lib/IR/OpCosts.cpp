//===- OpCosts.cpp - FLOPs and bytes of an operator's invocation ----------===//
//
// Declared costs have index names, `area` and `volume` as symbols; the sizes of one
// invocation are put in their place. What is not declared is counted in the formula.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/OpDef.h"

using namespace stage;

/// Element-function calls and arithmetic of a formula, per iterated element.
static unsigned countOperations(const OpDef &def, const Formula *f) {
  unsigned count = 0;
  switch (f->kind) {
  case Formula::Kind::Number:
  case Formula::Kind::SizeOf:
  case Formula::Kind::Index:
  case Formula::Kind::Element:
    return 0; // subscripts are addresses
  case Formula::Kind::Let:
    return countOperations(def, def.lets[f->operand].second);
  default:
    count = f->kind == Formula::Kind::Select || f->kind == Formula::Kind::And || f->kind == Formula::Kind::Or ? 0 : 1;
    for (const Formula *child : f->children)
      count += countOperations(def, child);
    return count;
  }
}

static Size substituteIndices(SizeContext &ctx, const OpDef &def, Size cost, llvm::ArrayRef<Size> sizes, Size area) {
  return substitute(cost, [&](llvm::StringRef symbol) -> Size {
    if (auto index = def.findIndex(symbol))
      return sizes[*index];
    if (symbol == "area" && area)
      return area;
    if (symbol == "volume") {
      Size volume = ctx.one();
      for (unsigned index : def.results.front().indices)
        volume = volume * sizes[index];
      return volume;
    }
    return Size();
  });
}

Size stage::getFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  if (def.vjpOf) {
    // Indices of a vjp are those of its op, in the same order.
    const OpDef &op = *def.vjpOf;
    if (op.backwardFlops)
      return substituteIndices(ctx, op, op.backwardFlops, sizes, area);
    Size forward = getFlops(ctx, op, sizes, area);
    bool linear = llvm::none_of(op.derivativeNeeds, [](bool needed) { return needed; });
    return linear ? forward : forward * 2;
  }
  if (def.flops)
    return substituteIndices(ctx, def, def.flops, sizes, area);
  if (def.isLookup || def.opaque)
    return ctx.zero();
  Size all = ctx.one();
  for (unsigned i = 0; i < def.indices.size(); ++i)
    all = all * sizes[i];
  // A product counts a multiply and an add per element of the iteration space (law L2).
  if (def.isProduct && llvm::is_contained(def.reduced, true))
    return all * int64_t(def.operands.size() > 1 ? 2 : 1);
  unsigned operations = 0;
  for (const ResultInfo &result : def.results)
    if (result.formula && !result.extra)
      operations += countOperations(def, result.formula);
  return all * int64_t(operations);
}

Size stage::getRecomputeFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  if (!def.vjpOf || !def.vjpOf->backwardRecompute)
    return Size();
  return substituteIndices(ctx, *def.vjpOf, def.vjpOf->backwardRecompute, sizes, area);
}

Size stage::getDeclaredBytes(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  return def.bytes ? substituteIndices(ctx, def, def.bytes, sizes, area) : Size();
}
