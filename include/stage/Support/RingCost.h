//===- RingCost.h - what a collective moves --------------------*- C++ -*-===//
//
// What leaves a rank when the members of a group pass on to their neighbour what is not
// theirs, the least that any algorithm comes by with where no switch adds up or copies.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_RINGCOST_H
#define STAGE_SUPPORT_RINGCOST_H

#include <cstdint>

namespace stage {

/// A part of the bytes that a rank puts in, numerator / denominator of them, sent in so many steps.
struct RingCost {
  int64_t numerator;
  int64_t denominator;
  int64_t steps;
};

/// Each member's input goes to all others.
inline RingCost getAllGatherCost(int64_t members) { return {members - 1, 1, members - 1}; }
/// Each member keeps, or needs of the others, one part of `members`; a reduce_scatter and an all_to_all.
inline RingCost getScatterCost(int64_t members) { return {members - 1, members, members - 1}; }
/// A reduce_scatter, and the all_gather of what it makes.
inline RingCost getAllReduceCost(int64_t members) { return {2 * (members - 1), members, 2 * (members - 1)}; }

} // namespace stage

#endif // STAGE_SUPPORT_RINGCOST_H
