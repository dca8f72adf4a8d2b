//===- OpCosts.cpp - FLOPs and bytes of an operator's invocation ----------===//
//
// Declared costs have index names, `area` and `volume` as symbols; the sizes of one
// invocation are put in their place. What is not declared was counted in the formula.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/OpDef.h"

using namespace stage;

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

Size stage::getFlops(SizeContext &ctx, const FlopTerm &term, llvm::ArrayRef<Size> sizes) {
  Size flops = ctx.constant(term.count);
  for (unsigned index : term.indices)
    flops = flops * sizes[index];
  return flops;
}

/// FLOPs that the formula says.
static FlopCounts countTerms(SizeContext &ctx, const OpDef &def, std::optional<FlopClass> declared,
                             llvm::ArrayRef<Size> sizes) {
  llvm::SmallVector<Size, 4> parts[3];
  for (const FlopTerm &term : def.flopTerms)
    parts[unsigned(declared.value_or(term.flopClass))].push_back(getFlops(ctx, term, sizes));
  return {ctx.sum(parts[0]), ctx.sum(parts[1]), ctx.sum(parts[2])};
}

FlopCounts stage::getFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  // Indices of a vjp are those of its op, in the same order.
  const OpDef &op = def.vjpOf ? *def.vjpOf : def;
  Size declared = def.vjpOf ? op.backwardFlops : def.flops;
  if (declared)
    declared = substituteIndices(ctx, op, declared, sizes, area);
  else if (def.vjpOf && op.flops) {
    // Its author counts otherwise than the formula does: a gradient of two operands costs twice what the op does.
    bool linear = llvm::none_of(op.derivativeNeeds, [](bool needed) { return needed; });
    declared = substituteIndices(ctx, op, op.flops, sizes, area) * int64_t(linear ? 1 : 2);
  }
  if (!declared)
    return countTerms(ctx, def, op.declaredClass, sizes);
  FlopCounts flops = {ctx.zero(), ctx.zero(), ctx.zero()};
  flops[op.declaredClass.value_or(op.flopClass)] = declared;
  return flops;
}

Size stage::getRecomputeFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  if (!def.vjpOf || !def.vjpOf->backwardRecompute)
    return Size();
  return substituteIndices(ctx, *def.vjpOf, def.vjpOf->backwardRecompute, sizes, area);
}

Size stage::getDeclaredBytes(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  return def.bytes ? substituteIndices(ctx, def, def.bytes, sizes, area) : Size();
}
