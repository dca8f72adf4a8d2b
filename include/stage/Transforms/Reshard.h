//===- Reshard.h - from one sharding to another (law L6) -------*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_RESHARD_H
#define STAGE_TRANSFORMS_RESHARD_H

#include "stage/IR/Graph.h"

namespace stage {

/// One step of a plan: a collective or a local slice, as in Op.
struct ReshardStep {
  OpKind kind;
  AxisList axes;        ///< In the order in which they stand on the dim.
  unsigned dim = 0;     ///< all_gather, all_to_all: becomes whole; reduce_scatter, slice: is split.
  unsigned toDim = 0;   ///< all_to_all: is split.
  ReduceKind reduce = ReduceKind::Sum;
  Sharding result;      ///< What the value is after the step.
};

/// Steps that bring a value from one sharding to another; empty if they are equal. Several axes that take the same
/// way take it in one step over one group.
/// Requires: what `to` keeps partial is partial in `from`.
llvm::SmallVector<ReshardStep, 4> planReshard(const Sharding &from, const Sharding &to);

/// Inserts the ops of a plan into `block` before an op of it (null: at the end) and returns the resharded value.
Value *insertReshard(Value *value, const Sharding &to, Block &block, Op *before);

} // namespace stage

#endif // STAGE_TRANSFORMS_RESHARD_H
