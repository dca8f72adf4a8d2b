//===- SplitProducts.cpp - several products as one op ---------------------===//
//
// Problem: real kernels make the products of one tensor with several matrices at once, as if the matrices stood side by
// side. The program says so by an op with several results. But sharding and gradients are those of each product:
// queries may be split where keys have copies, and each matrix has its own.
//
//   op qkv(x: [b, s, d], wq: [d, k, g, e], wk: [d, k, e]) -> (q: [b, s, k, g, e], key: [b, s, k, e])
//     = (sum[d](x * wq), sum[d](x * wk));
//
//   op qkv(x: [b, s, d], wq: [d, k, g, e]) -> (q: [b, s, k, g, e] = sum[d](x * wq)) { part 0 of qkv; }
//   op qkv.1(x: [b, s, d], wk: [d, k, e]) -> (key: [b, s, k, e] = sum[d](x * wk)) { part 1 of qkv; }
//
// Algorithm: each result becomes an op of its own, with the operands and indices of its formula, which remembers of
// what it is a part. The pass fuse-products puts the parts together once their shardings are known.
//
// Limits: each result is one sum of products, which has the first operand; an op with clauses stays as it is.
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"

using namespace stage;

/// The products, in the order of the results, if the op is several of its first operand and declares nothing of itself
/// as a whole.
std::vector<ProductTerm> OpLowering::findParts() {
  bool declares = def.flops || def.bytes || def.backwardFlops || def.declaredClass || def.declaresSaves ||
                  def.stopGradient || !linearClauses.empty() ||
                  llvm::any_of(def.indices, [](const IndexInfo &index) { return index.whole || index.fold; });
  if (declares || def.results.size() < 2)
    return {};
  OpDef whole = def;
  analyze(whole);
  bool areParts = whole.terms.size() == whole.results.size() && llvm::all_of(whole.terms, [](const ProductTerm &term) {
                    return llvm::is_contained(term.operands, 0u);
                  });
  return areParts ? std::move(whole.terms) : std::vector<ProductTerm>();
}

Op *OpLowering::appendPart(const ProductTerm &term, SMRange range, Block &block, llvm::StringRef scope) {
  llvm::SmallVector<unsigned, 8> used = listIndices(def, term), toIndices(def.indices.size(), 0),
                                 toOperands(def.operands.size(), 0);
  for (unsigned i = 0; i < def.indices.size(); ++i) { // also what is several indices as one
    auto isUsed = [&](unsigned index) { return llvm::is_contained(used, index); };
    if (def.indices[i].isCompound() && llvm::all_of(def.indices[i].members, isUsed))
      used.push_back(i);
  }
  llvm::sort(used);
  OpDef made;
  made.name = def.name;
  made.loc = def.loc;
  made.part = {def.name, term.result, /*isAddend=*/false};
  llvm::SmallVector<Extent, 6> sizes;
  for (unsigned index : used) {
    toIndices[index] = made.indices.size();
    IndexInfo info = def.indices[index];
    for (unsigned &member : info.members)
      member = toIndices[member];
    made.indices.push_back(std::move(info));
    sizes.push_back(extents[index]);
  }
  auto translate = [&](llvm::SmallVectorImpl<unsigned> &indices) {
    for (unsigned &index : indices)
      index = toIndices[index];
  };
  llvm::SmallVector<Value *, 2> madeOf;
  llvm::SmallVector<unsigned, 4> inOrder = term.operands;
  llvm::sort(inOrder);
  for (unsigned operand : inOrder) {
    toOperands[operand] = made.operands.size();
    translate(made.operands.emplace_back(def.operands[operand]).indices);
    madeOf.push_back(operands[operand]);
  }
  const ResultInfo &result = def.results[term.result];
  translate(made.results.emplace_back(result).indices);
  made.results.back().formula = graph.defs.translate(result.formula, toIndices, toOperands);
  return append(std::move(made), madeOf, sizes, range, block, scope);
}
