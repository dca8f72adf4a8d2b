//===- SplitAddends.cpp - sums of reductions in place ---------------------===//
//
// Problem: a formula in place is one op, and an op has its indices whole that it reduces
// inside of something else. A bias beside a product would so keep the product from being
// split: every rank would gather the weight and compute all of it.
//
//   let y[b, d] = sum[f](h[b, f] * w[f, d]) + c[d];
//   %0 = contract(%h, %w)        f may be split: %0 is partial
//   %y = formula(%0, %c)         after one reduction
//
// Algorithm: the addends of the formula's sum that contain a reduction become ops of
// their own, with those of the result's indices that stand in them; the rest is a formula
// of their results. Both parts adopt the indices, operands and lets of the whole that
// they use. The work is the same, node by node.
//
// Limits: declared ops stay as they are declared, and so does a formula that takes a dim
// apart, whose parts have no dim of their own to be adopted by.
//
//===----------------------------------------------------------------------===//
#include "IndexNames.h"
#include "OpLowering.h"

using namespace stage;
using Kind = Formula::Kind;

static bool isSumOrNegation(const Formula *f) {
  return f->kind == Kind::Add || f->kind == Kind::Sub || f->kind == Kind::Negate;
}

static unsigned countAddends(const Formula *f) {
  if (!isSumOrNegation(f))
    return 1;
  unsigned count = 0;
  for (const Formula *child : f->children)
    count += countAddends(child);
  return count;
}

static bool reduces(const Formula *f) { return f->kind == Kind::Reduce || llvm::any_of(f->children, reduces); }

/// Appends the op of a formula in place, after those of its addends that contain a reduction.
Op *OpLowering::finishInPlace(SMRange range, Block &block, llvm::StringRef scope) {
  const Formula *formula = def.results.front().formula;
  bool takesApart = llvm::any_of(def.indices, [](const IndexInfo &index) { return index.isCompound(); });
  if (takesApart || !reduces(formula) || countAddends(formula) < 2) {
    analyze(def);
    if (def.name != "concat")
      def.name = def.isView ? "view" : def.flopClass == FlopClass::Contraction ? "contract" : def.name;
    return finish(range, block, scope);
  }
  if (!checkSubscripts())
    return nullptr;
  OpLowering rest(graph, evaluator, types);
  rest.def.name = def.name;
  rest.def.loc = def.loc;
  const Formula *sum = rest.splitAddends(*this, formula, range, block, scope);
  if (!sum)
    return nullptr;
  rest.adoptResult(*this, sum);
  for (unsigned index : def.results.front().indices)
    rest.def.results.front().indices.push_back(rest.adoptIndex(*this, index));
  return rest.finish(range, block, scope);
}

/// The sum over the results of addends that became ops; null after an error.
const Formula *OpLowering::splitAddends(const OpLowering &whole, const Formula *formula, SMRange range, Block &block,
                                        llvm::StringRef scope) {
  if (isSumOrNegation(formula)) {
    llvm::SmallVector<const Formula *, 2> children;
    for (const Formula *child : formula->children)
      if (children.push_back(splitAddends(whole, child, range, block, scope)); !children.back())
        return nullptr;
    return graph.defs.create(*formula, {}, children);
  }
  if (!reduces(formula))
    return adopt(whole, formula);
  OpLowering part(graph, evaluator, types);
  part.def.name = whole.def.name;
  part.def.loc = whole.def.loc;
  part.adoptResult(whole, part.adopt(whole, formula));
  llvm::SmallVector<unsigned, 4> indices; // of this op
  for (unsigned index : whole.def.results.front().indices)
    if (auto adopted = part.adoptedIndices.find(index); adopted != part.adoptedIndices.end()) {
      part.def.results.front().indices.push_back(adopted->second);
      indices.push_back(adoptIndex(whole, index));
    }
  analyze(part.def);
  if (part.def.flopClass == FlopClass::Contraction)
    part.def.name = "contract";
  Op *op = part.finish(range, block, scope);
  if (!op)
    return nullptr;
  unsigned operand = def.operands.size();
  def.operands.push_back({"part" + std::to_string(operand), indices});
  operands.push_back(op->getResult());
  return graph.defs.element(operand, indices);
}

/// The only result, of the element type that the whole has.
void OpLowering::adoptResult(const OpLowering &whole, const Formula *formula) {
  ResultInfo &result = def.results.emplace_back();
  result.name = "result";
  result.formula = formula;
  if (getResultType() != whole.getResultType())
    result.dtype = whole.getResultType();
}

unsigned OpLowering::adoptIndex(const OpLowering &whole, unsigned index) {
  auto [it, isNew] = adoptedIndices.try_emplace(index, def.indices.size());
  if (isNew) {
    def.indices.push_back(whole.def.indices[index]);
    extents.push_back(whole.extents[index]);
    indexLocs.push_back(whole.indexLocs[index]);
    isOwnIndex.push_back(whole.isOwnIndex[index]);
  }
  return it->second;
}

/// The formula in terms of this op.
const Formula *OpLowering::adopt(const OpLowering &whole, const Formula *formula) {
  Formula node = *formula;
  llvm::SmallVector<const Formula *, 4> children;
  for (const Formula *child : formula->children)
    children.push_back(adopt(whole, child));
  llvm::SmallVector<unsigned, 4> indices;
  for (unsigned index : formula->indices)
    indices.push_back(adoptIndex(whole, index));
  switch (formula->kind) {
  case Kind::Index:
    node.index = adoptIndex(whole, formula->index);
    break;
  case Kind::SizeOf:
    node.size = substitute(formula->size, [&](llvm::StringRef symbol) {
      std::optional<unsigned> index = readIndexSymbol(symbol);
      return index ? getIndexSymbol(graph.sizes, adoptIndex(whole, *index)) : Size();
    });
    break;
  case Kind::Element: {
    auto [it, isNew] = adoptedOperands.try_emplace(formula->operand, def.operands.size());
    if (isNew) {
      OperandInfo info{whole.def.operands[formula->operand].name, {}};
      for (unsigned index : whole.def.operands[formula->operand].indices)
        info.indices.push_back(adoptIndex(whole, index));
      def.operands.push_back(std::move(info));
      operands.push_back(whole.operands[formula->operand]);
    }
    node.operand = adoptedOperands.lookup(formula->operand);
    break;
  }
  case Kind::Let: {
    if (!adoptedLets.count(formula->operand)) {
      const auto &[name, value] = whole.def.lets[formula->operand];
      const Formula *adopted = adopt(whole, value);
      adoptedLets[formula->operand] = def.lets.size();
      def.lets.emplace_back("shared." + std::to_string(def.lets.size()), adopted);
    }
    node.operand = adoptedLets.lookup(formula->operand);
    break;
  }
  default:
    break;
  }
  return graph.defs.create(node, indices, children);
}
