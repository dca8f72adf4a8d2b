//===- CachePlace.h - states that are written over ------------*- C++ -*-===//
//
// Problem: a step takes a state, and makes the one that takes its place:
//
//   %y, %next = state_steps(%x, %state)        next[b, p, n] = exp(a[b]) * state[b, p, n] + ...
//   write(%state, %next)
//
// Its kernel writes `next` over `state`, element by element, so that there is no second
// copy. So does a kernel that makes the state behind which nothing reads the old one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_CACHEPLACE_H
#define STAGE_IR_GRAPH_CACHEPLACE_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// The cache that a compute op makes a value in: the value is written to it and used for nothing else, and behind the
/// op nothing reads what the cache had; the op itself reads each element of that at most at the same one of the value.
/// Null for any other value, which takes memory of its own while it is made.
const Value *getCacheWrittenInPlace(const Value &value);

} // namespace stage

#endif // STAGE_IR_GRAPH_CACHEPLACE_H
