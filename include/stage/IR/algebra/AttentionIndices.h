//===- AttentionIndices.h - what the indices of an attention are *- C++ -*-===//
//
// Problem: prices and quantization need to know which operands of an op of `class = attention` are queries, keys and
// values. Its formula says it, whatever the program calls them:
//
//   attention(q: [b, s, k, g, e], key: [b, t, k, e], val: [b, t, k, u])
//     scores over b, s, t, k, g; rows s; columns t; inner e, u, of which the scores add up e
//
// Rule: each product of the formula ranges over the scores and over what it sums or makes besides. Queries, keys and
// values have such an inner index; sinks and tables of biases have none.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_ATTENTIONINDICES_H
#define STAGE_IR_ALGEBRA_ATTENTIONINDICES_H

#include "stage/IR/algebra/OpDef.h"
#include "llvm/ADT/SmallSet.h"

namespace stage {

struct AttentionIndices {
  using Set = llvm::SmallSet<unsigned, 8>;
  Set scores;  ///< Those of the scores.
  Set inner;   ///< All of the products.
  Set addedUp; ///< Those that some sum of the formula adds up.
  std::optional<unsigned> rows, columns;

  bool isInner(unsigned index) const { return inner.count(index) && !scores.count(index); }
};

/// Those of a forward op. Absent if its formula has no products.
std::optional<AttentionIndices> findAttentionIndices(const OpDef &forward);

/// Whether an operand that has `index` stands with the columns of the scores, as keys do, or (`wanted` is false)
/// without them, as queries do.
bool standsWith(const OpDef &forward, unsigned index, std::optional<unsigned> columns, bool wanted);

/// The operands that the products of a forward attention multiply: queries, keys and values.
llvm::SmallVector<unsigned, 4> listMultiplied(const OpDef &forward, const AttentionIndices &indices);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_ATTENTIONINDICES_H
