//===- CarriedSlots.h - what must move where repeats are cut ---*- C++ -*-===//
//
// Problem: where a pipeline cuts a repeat, only what later iterations read must move.
// With layers that differ a carried value may be made anew before anything reads it,
// and its gradient is then nothing at that place:
//
//   layers 0, 1     k = keys(h);  h = attend(h, k)       k is carried for layers that
//   layers 2, 3     h = attend(h, k)                     share the keys of an earlier one
//   ---------- cut: h moves; k does not, layer 4 begins with a k of its own
//   layers 4, 5     k = keys(h);  h = attend(h, k)
//
// Algorithm: from the last iteration to the first, a slot is read if something reads
// its argument, or if it is yielded to a slot that the next iteration reads. From the
// first to the last, a slot is a constant if a constant is yielded to it. An iteration
// that runs the body of the one before, and found the same there, changes nothing. Where
// the result of one repeat enters the next, both go on from the one to the other.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_CARRIEDSLOTS_H
#define STAGE_LIB_TRANSFORMS_CARRIEDSLOTS_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace stage {

/// What a repeat carries at one place between its iterations.
struct CarriedSlots {
  llvm::BitVector isRead;                        ///< By a later iteration, or by what uses the repeat's results.
  llvm::SmallVector<const Value *, 4> constants; ///< The constant that a slot holds; null for any other value.

  bool isMoved(unsigned slot) const { return isRead.test(slot) && !constants[slot]; }
};

/// One of the repeats that a pipeline cuts.
struct CarryingRepeat {
  Op *op;
  int64_t count;                  ///< Of all its iterations.
  llvm::DenseSet<int64_t> places; ///< Numbers of iterations that have run.
  llvm::DenseMap<int64_t, CarriedSlots> slots = llvm::DenseMap<int64_t, CarriedSlots>(); ///< At each of these places.
};

/// Fills in the slots of repeats of one phase, in the order in which they run.
void findCarriedSlots(llvm::MutableArrayRef<CarryingRepeat> repeats);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_CARRIEDSLOTS_H
