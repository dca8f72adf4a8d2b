//===- ShardingRules.h - what an op makes and needs (law L4) ---*- C++ -*-===//
//
// Once propagate-sharding has given an op its `indexAxes`, everything else about its
// shardings follows from its notation and is computed here, in one place, for the
// passes, the verifier and the proof alike.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_SHARDINGRULES_H
#define STAGE_IR_GRAPH_SHARDINGRULES_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Axes that an index of a compute op has whatever its operands are: what the strategy says of the op, else, for a
/// gradient, what the op has of which it is one (where that is split, or said to be whole). Nothing: open.
std::optional<AxisList> getDecidedAxes(const Op &op, unsigned index);

/// Of the axes of a dim, those that its outermost part of size `extent` can have: the leading ones that divide it. What
/// is split further would be pieces of an inner part.
AxisList getLeadingAxes(const Graph &graph, Size extent, llvm::ArrayRef<PlacedAxis> axes);

/// Axes that stand on a folded index of an op and on another one, too, or on two indices of a product: coordinate c
/// works on its part of the one and on the block of the other that it has. With `cp` on s and `cp rotated 1` on t of
/// two blocks these are
///
///           t: 0  1
///   s: 0       .  x       coordinate 0
///      1       x  .       coordinate 1
///
/// The op is that of these pairs, and makes nothing partial that has one of the two. One that goes round a ring has
/// been at all pairs.
AxisSet getPairedAxes(const Op &op);

/// Axes over which the tokens of an op that routes are split, and with them the slots: ranks route each what they have.
AxisSet getRoutedAxes(const Op &op);

/// Of the paired axes, those that an operand or a result would have on two dims, as one that has both indices does.
AxisSet getAxesTwice(const Op &op);

/// Axes over which a compute op hands the partial state of its operands on to its results: those of operands it is
/// linear in, and, for a sum, those over which every addend is partial; for several products those that one of them
/// hands on.
AxisSet getPassedPartial(const Op &op);

/// Whether the products whose sum a result is (OpDef::terms) are partial over the same axes, as addends must be: one
/// that is complete would be added once per rank.
bool areTermsAlike(const Op &op, unsigned result);

/// Whether an index of a compute op may have an axis as far as gradients are concerned that it is given of results
/// without the index: these are added to what the others give, and must be sums over the axis, too, of which each rank
/// has an addend.
///
///   q[g@tp], k = split(y)   with copies of k         dy = split.grad(dq[g@tp], dk)   is partial over tp, as dk must be
bool areAddendsOver(const Op &op, unsigned index, AxisId axis);

/// Sharding of a result of a compute op as the op makes it: its indices' axes, partial over the axes of the indices
/// that the result lacks and over what is passed on.
Sharding getNaturalSharding(const Op &op, unsigned result);

/// That of what an append makes: of its cache, where there are others than the new positions, else of these, which are
/// whole on each rank.
Sharding getAppendedSharding(const Op &op);

/// Sharding in which an op needs an operand. For ops that take a value as it is: the value's own.
Sharding getNeededSharding(const Op &op, unsigned operand);

} // namespace stage

#endif // STAGE_IR_GRAPH_SHARDINGRULES_H
