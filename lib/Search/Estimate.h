//===- Estimate.h - how long a search takes --------------------*- C++ -*-===//
//
// Problem: a space of a billion candidates should say how long it takes before it begins, not after an hour.
//
// Rule: some numbers are drawn evenly from the whole space. How many of them requirements allow, and what a few of
// these take, is measured on this machine; it is multiplied by the size of the space. Bounds of time, which leave out
// more the longer a search lasts, are not counted: a search may end earlier.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEARCH_ESTIMATE_H
#define STAGE_LIB_SEARCH_ESTIMATE_H

#include "Space.h"

namespace stage {

/// The numbers below `count` in an order in which each part of it is spread over all of them. Always the same order.
class ScatteredNumbers {
public:
  explicit ScatteredNumbers(size_t count);
  /// `i` is below the count.
  size_t get(size_t i) const { return size_t((unsigned __int128)(i)*step % count); }

private:
  size_t count, step;
};

/// Seconds that a search takes in so many threads. `compile` binds and compiles a candidate as a search does.
double estimateSeconds(const Spaces &spaces, size_t count, unsigned threads,
                       llvm::function_ref<void(llvm::ArrayRef<size_t> numbers)> prepare,
                       llvm::function_ref<void(size_t number)> compile);

} // namespace stage

#endif // STAGE_LIB_SEARCH_ESTIMATE_H
