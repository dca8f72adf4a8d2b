//===- Work.h - what a task computes, as far as its price depends on it *- C++ -*-===//
//
// Problem: FLOPs and bytes do not say how long an op takes. A product of 8 rows reaches a hundredth of the rate of one
// of 8,192 rows, attention reaches another rate than products, and most other ops wait for memory.
//
//   linear(x: [4096, 8192], w: [8192, 1024])     Contraction, m = 4096, n = 1024, k = 8192
//   its weight gradient, added in f32            Contraction, m = 1024, n = 8192, k = 4096, resultBytes = 8 m n
//   8 experts of 512 rows each                   Contraction, batch = 8, m = 512, isGrouped
//   attention of 8 heads, 4096 tokens            Attention, heads = 8, rows = columns = 4096, pairs = 8 * 4096^2 / 2
//   a new token of it against its cache          Attention, heads = 8, rows = 1, columns = 4096, pairs = 8 * 4096
//   rms_norm                                     Elementwise
//
// Limits: one product, or one attention, per task. A task that computes several says the sum of their FLOPs and the
// shape of the largest.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_WORK_H
#define STAGE_MACHINE_WORK_H

#include "stage/IR/algebra/Types.h"

namespace stage {

enum class WorkKind : uint8_t {
  Elementwise, ///< What waits for memory: element-wise ops, norms, lookups, permutations of tokens, optimizers.
  Contraction, ///< `batch` products of m x k by k x n.
  Attention,   ///< Products of queries with keys and of probabilities with values, and the softmax, in one kernel.
};

/// Numbers are those of one rank. What a kind does not use has its default.
struct Work {
  WorkKind kind = WorkKind::Elementwise;
  bool isOnHost = false;
  bool isBackward = false;  ///< Of attention: queries', keys' and values' gradients.
  bool isOptimizer = false; ///< An update of parameters.
  int64_t flops = 0;        ///< All of the task, those among them that it computes again.
  int64_t bytes = 0;        ///< Read and written.
  int64_t besideBytes = 0;  ///< The same of kernels that software runs beside the one of the task.
  int64_t host = 0;         ///< Picoseconds for which the device waits for the host.
  bool isInside = false;    ///< Another task's kernel does all of it.
  Rational speed = {1, 1};  ///< Of the software's kernel, as a part of what the machine says.

  DType type = DType::F32; ///< In which operands are multiplied: of quantized ones the type that they are kept in.
  bool allowsTF32 = false; ///< Operands in f32 may be rounded for tensor cores, which software decides.

  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool isGrouped = false;  ///< Each product of the batch has weights of its own, as experts have.
  int64_t resultBytes = 0; ///< Of the result written; where the product adds to a buffer, read and written.

  int64_t rows = 0, columns = 0; ///< Of one sequence: queries, and keys, without regard to the mask.
  int64_t heads = 0;             ///< Heads of queries of all sequences together.
  int64_t keyHeads = 0;          ///< The same of keys.
  int64_t headSize = 0;          ///< Elements of a query.
  int64_t valueSize = 0;         ///< Elements of a value.
  int64_t pairs = 0;             ///< That the mask keeps, of all heads and sequences.
  bool isLatent = false;         ///< Values are parts of keys, and one tensor holds both.
  /// Of products: what the result has beyond 2 bytes an element, or beyond the operands' type if that is wider, as
  /// where it is added to a buffer.
  int64_t getAddedBytes() const {
    int64_t written = std::max<int64_t>(getBitSize(type) / 8, 2) * batch * m * n;
    return kind == WorkKind::Contraction ? std::max<int64_t>(0, resultBytes - written) : 0;
  }
  bool operator==(const Work &other) const = default;
};

} // namespace stage

#endif // STAGE_MACHINE_WORK_H
