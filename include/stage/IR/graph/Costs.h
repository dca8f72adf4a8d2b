//===- Costs.h - FLOPs and bytes of an op on one rank ----------*- C++ -*-===//
//
// Problem: the report and the traces must count the same work. Both ask here.
//
// A cost is a size for *one invocation on one rank*: the indices of the op have
// their local sizes. It may contain coordinates as symbols: `coord.cp` is the
// rank's coordinate on axis cp, from 0. Example: causal attention whose queries are
// split over cp into contiguous pieces of n = S/cp rows. The rank at coordinate i
// holds rows [i*n, (i+1)*n) and has
//
//   area = n*(i*n) + n*n/2          pairs (s, t) with t <= s
//
// whose sum over i is the S*S/2 of the whole triangle (a triangle of side n counts
// n*n/2, as the field does). With a mirrored ("zigzag") layout every rank has
// S*S/2/cp exactly. Of a dim that is dealt out by a table a rank has `load[coord.ep]`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_COSTS_H
#define STAGE_IR_GRAPH_COSTS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// What one invocation of an op costs one rank. Never null.
struct OpCost {
  /// 2 per multiply-add. What a fused backward computes again, or an op that is there to make values again, is not in
  /// here.
  FlopCounts flops;
  /// FLOPs that are computed again.
  Size recomputeFlops;
  /// Compute, accumulate, update: bytes read and written, gradient buffers that are added
  /// to among them. Copies: bytes that are copied. Slice: none, it is a view. Collectives: bytes that the rank puts in,
  /// or, where the members of its group differ, the most that one of them does (law L7); of an all_to_all, puts in or
  /// gets out.
  Size bytes;
  /// Of communication: bytes that the rank itself puts in. Else null.
  Size ownBytes = Size();
  /// All that the rank computes: `num_ops` of a trace.
  Size getComputed() const { return flops.getTotal() + recomputeFlops; }
};
OpCost getLocalCost(const Graph &graph, const Op &op);

/// The accumulation that the maker of a value does itself, as fused kernels do: the value is a contribution to a
/// gradient, of the buffer's type, made by an operator beside the accumulation and used by nothing else. It is then no
/// tensor: the operator reads and writes the buffer, and the accumulation costs nothing. Null where a tensor and an
/// addition remain: the precision says `accumulate separate`, a reshard or a repeat made the value, or something else
/// uses it.
const Op *getFusedAccumulation(const Graph &graph, const Value *value);
/// 1 on a rank that has pairs under the mask in this step of a ring, 0 on one that has none: it goes on with what it
/// had. Nothing for an op that all ranks run.
Size getPresence(const Graph &graph, const Op &op);
/// The op has a node in traces: an op that moves no bytes on any rank has none, and no cost.
bool hasNode(const Graph &graph, const Op &op);
/// An accumulation that is an addition of its own.
bool isSeparateAccumulation(const Graph &graph, const Op &op);

/// Pairs that the mask of a compute op keeps on a rank, exact for every layout; null if the op has no mask. Of rows
/// that are packed half of what the graph's sum of twice the area is.
Size getLocalMaskArea(const Graph &graph, const Op &op);

/// How many of the positions [0, end) a rank has where they are dealt out in turn (Layout::Cyclic) over `axes`, one or
/// none: an expression over its coordinate.
Size countInTurn(const Graph &graph, Size end, llvm::ArrayRef<PlacedAxis> axes);

/// Local sizes of the indices of a compute op, in the order of its OpDef.
llvm::SmallVector<Size, 8> getLocalIndexSizes(const Graph &graph, const Op &op);

/// The axes whose coordinates occur in a size.
AxisSet getCoordinateAxes(const Mesh &mesh, Size size);

} // namespace stage

#endif // STAGE_IR_GRAPH_COSTS_H
