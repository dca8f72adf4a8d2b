//===- QuantizedOperands.h - operands that are read in small types *- C++ -*-===//
//
// Problem: `quantize` is about ops that multiply tensors. Which ops do, which of their operands are multiplied, and
// along which dims do the blocks of these lie?
//
//   linear(x, w) = sum[d](x[b, s, d] * w[d, f])      x, w              blocks along d
//   attention(q, key, val)                           q, key, val       q, key along e, val along its positions t
//   its backward(q, key, val, o, lse, do)            q, key, val, do   q, key along e, val and do along u
//
// Rule: a block lies along what a product adds up. An op of `class = attention` has two products, and its backward
// multiplies the gradient of the result with the values. Softmax, its sums and the result are no operands of products.
//
// Limits: backward of attention has other products, too, which add up tokens. A kernel with blocks of scales makes
// second copies of queries, keys and gradients for them, along tokens (NVIDIA, "How Scales Are Applied in MXFP8
// Attention"); here it reads one copy of each.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_QUANTIZEDOPERANDS_H
#define STAGE_LIB_TRANSFORMS_QUANTIZEDOPERANDS_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Rule.h"

namespace stage {

using QuantizedBlocks = llvm::SmallVector<uint32_t, 4>;

/// A sum of products of two tensors or more, each at plain indices.
bool isQuantizableProduct(const Op &op);
/// An op of `class = attention` that is no such product, or its backward.
bool isQuantizableAttention(const Op &op);

/// The operands that an op multiplies: all of a product; of an attention queries, keys and values; of its backward the
/// same and the gradient of the result. Empty for other ops.
llvm::SmallVector<unsigned, 4> listQuantizedOperands(const Op &op);

/// The blocks of an operand: n elements along what the op adds up, m along other dims. Neighbouring dims of a kind are
/// one to blocks, unless all operands have them. Of several such runs the last one is cut. With `isTurned` the two
/// kinds of a product change places.
QuantizedBlocks getBlocks(const Rule &rule, const Op &op, unsigned operand, bool isTurned);
/// n elements of the last dim, and m of the one before.
QuantizedBlocks getLastBlocks(const Rule &rule, const TensorType &type);

/// The cache whose positions an operand has; null: none.
Value *findCache(Value &operand);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_QUANTIZEDOPERANDS_H
