//===- RoutedApart.h - tokens that are routed in sets ----------*- C++ -*-===//
//
// Problem: `routes n, j -> x, c by to` speaks of indices of the operand that says where tokens go, and that may have
// more, which all results have, too. At each position of these, tokens are routed apart, into slots of their own:
//
//   op spread(t: [o, n, d], to: [o, n, j]) -> (result: [o, x, c, d] = t[o, n, d]) { routes n, j -> x, c by to; }
//
// These indices take no part in the routing (Routing in OpDef.h): each may be split over any axes, and their sizes
// multiply tokens and slots.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_ROUTEDAPART_H
#define STAGE_IR_ALGEBRA_ROUTEDAPART_H

#include "stage/IR/algebra/OpDef.h"

namespace stage {

/// The indices at each position of which an op, or the one of which it is the gradient, routes tokens apart, in the
/// order of the operand that routes; none for an op that does not route.
llvm::SmallVector<unsigned, 2> getApart(const OpDef &def);

/// What the indices that follow from others depend on: where the results are, and `getApart`.
llvm::SmallVector<unsigned, 4> getDeciding(const OpDef &def);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_ROUTEDAPART_H
