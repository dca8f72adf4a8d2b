//===- TaskWork.h - what an op computes, as a machine prices it -*- C++ -*-===//
//
// Problem: a price needs the shape of a product or of attention (stage/Machine/Work.h), and operators are index
// notation, which anyone may write.
//
//   op linear(x: [b, s, d], w: [d, f]) -> (y: [b, s, f] = sum[d](x * w))
//       k: what both operands have and the result has not, d; m: what x alone has, b s; n: what w alone has, f
//   op experts(t: [x, c, d], w: [x, d, f]) -> (y: [x, c, f] = sum[d](t * w))
//       batch: what all three have, x
//   op attention(q: [b, s, k, g, e], key: [b, t, k, e], val: [b, t, k, u]) -> ...
//       scores: what all of its products have, b s k g t; rows s and columns t are those of the mask
//
// Rule: sizes are those of the rank. A kernel that makes several products at once has one row dim and the sum of their
// columns (q, k and v of one input), or of what they sum over (the gradient of that input). An operand that is a
// parameter has the columns, n; of the product for a parameter's gradient m and n are the width that the parameter
// makes, and the width that it takes. What is neither a product nor attention waits for memory, as
// does a product in which neither operand has an index of its own: sum[b, s](x * dy), x: [b, s, d], dy: [b, s, d].
//
// An op that is computed again is priced as it was, and the pairs of attention are those of the mask on the rank, also
// where its FLOPs are declared without them.
//
// Limits: of an op that contracts without being a product, such as a convolution, the largest of its contractions
// counts, with all FLOPs of the op.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_TASKWORK_H
#define STAGE_TASKS_TASKWORK_H

#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Program.h"
#include "stage/Machine/Work.h"
#include "stage/Tasks/Kernels.h"

namespace stage {

/// What an op that computes does on a rank, where it has this cost, with these kernels (null: as it says).
/// `evaluate` finds the number of a size there.
Work getWork(const Graph &graph, const Op &op, const OpCost &cost, const Kernels *kernels,
             llvm::function_ref<int64_t(Size)> evaluate);

/// Axes along which ranks of a stage differ in what an op does: those on which costs or what they hold depend, and
/// those on which the pairs of attention do.
AxisSet findAxesOfWork(const Program &program, const StageProgram &stage);
/// Axes along which numbers of the stage differ. Along others the ranks have the same number of everything, although
/// sizes may name their coordinates.
AxisSet findUnlikeAxes(const Program &program, const StageProgram &stage);

} // namespace stage

#endif // STAGE_TASKS_TASKWORK_H
