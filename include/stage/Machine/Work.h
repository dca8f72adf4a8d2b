//===- Work.h - what a task computes, as far as its price depends on it *- C++ -*-===//
//
// Problem: FLOPs and bytes do not say how long an op takes. A matrix product of 8 rows reaches a hundredth of the
// FLOP/s that a product of 8,192 rows reaches. Attention and products reach different rates, and most other ops wait
// for memory.
//
//   linear(x: [4096, 8192], w: [8192, 1024])     Contraction, m = 4096, n = 1024, k = 8192
//   weight gradient, accumulated in f32          Contraction, m = 1024, n = 8192, k = 4096, resultBytes = 8 m n
//   8 experts of 512 rows each                   Contraction, batch = 8, m = 512, isGrouped, experts = 64, choices = 4,
//                                                tokens = 8192
//   attention of 8 heads, 4096 tokens            Attention, heads = 8, rows = columns = 4096, pairs = 8 * 4096^2 / 2
//   the same, one new token against its cache    Attention, heads = 8, rows = 1, columns = 4096, pairs = 8 * 4096
//   rms_norm                                     Elementwise
//
// Limits: a task has the shape of one product or one attention. A task that computes several products gives the sum of
// their FLOPs and the shape of the largest product.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_WORK_H
#define STAGE_MACHINE_WORK_H

#include "stage/IR/algebra/Types.h"

namespace stage {

enum class WorkKind : uint8_t {
  Elementwise, ///< Ops that wait for memory: element-wise ops, norms, lookups, permutations of tokens, optimizers.
  Contraction, ///< `batch` products of m x k by k x n.
  Attention,   ///< Products of queries with keys and of probabilities with values, and the softmax, in one kernel.
};

/// All numbers are per rank. Members that a kind does not use keep their defaults.
struct Work {
  WorkKind kind = WorkKind::Elementwise;
  bool isOnHost = false;
  bool isBackward = false;  ///< Attention: computes the gradients of queries, keys and values.
  bool isOptimizer = false; ///< An update of parameters.
  int64_t flops = 0;        ///< All FLOPs of the task, with recomputed ones.
  int64_t bytes = 0;        ///< Bytes read and written.
  int64_t besideBytes = 0;  ///< Bytes that kernels beside the task's own one read and write.
  int64_t host = 0;         ///< Picoseconds for which the device waits for the host.
  /// Picoseconds that an element-wise kernel takes besides its bytes, in place of the machine's shortest kernel;
  /// negative: not said.
  int64_t floor = -1;
  bool isInside = false;   ///< Another task's kernel does all of it.
  Rational speed = {1, 1}; ///< Speed of the software's kernel, as a part of what the machine says.

  DType type = DType::F32;    ///< Element type of the multiplication; for quantized operands their stored type.
  bool isBlockScaled = false; ///< Quantized operands have a scale for each block, not one for all elements.
  bool allowsTF32 = false;    ///< Operands in f32 may be rounded for tensor cores, which software decides.

  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool isGrouped = false;  ///< Each product of the batch has its own weights, for example one expert each.
  int64_t experts = 0;     ///< If they are experts: how many there are on all ranks,
  int64_t choices = 0;     ///< to how many each token goes,
  int64_t tokens = 0;      ///< and how many tokens there are on all ranks.
  int64_t resultBytes = 0; ///< Bytes of the result written; if the product adds to a buffer, also those read.

  int64_t rows = 0, columns = 0; ///< Queries and keys of one sequence, masked or not.
  int64_t heads = 0;             ///< Query heads of all sequences together.
  int64_t keyHeads = 0;          ///< Key heads of all sequences together.
  int64_t headSize = 0;          ///< Elements of a query vector.
  int64_t valueSize = 0;         ///< Elements of a value vector.
  int64_t pairs = 0;             ///< Pairs of a query and a key that the mask keeps, over all heads and sequences.
  /// Rows and columns are those of several sequences together, as in an iteration of a server.
  bool isPacked = false;
  int64_t promptPairs = 0; ///< If it is packed: pairs of sequences with several queries.
  int64_t tiledPairs = 0;  ///< Pairs that a kernel computes whose rows are whole tiles of each sequence and head; 0:
                           ///< `pairs`.
  bool isLatent = false;   ///< One tensor holds keys and values: each value is a part of its key.
  /// Bytes of a product's result beyond 2 an element, or beyond the operands' type if that is wider. A result that is
  /// added to a buffer has them.
  int64_t getAddedBytes() const {
    int64_t written = std::max<int64_t>(getBitSize(type) / 8, 2) * batch * m * n;
    return kind == WorkKind::Contraction ? std::max<int64_t>(0, resultBytes - written) : 0;
  }
  bool operator==(const Work &other) const = default;
};

} // namespace stage

#endif // STAGE_MACHINE_WORK_H
