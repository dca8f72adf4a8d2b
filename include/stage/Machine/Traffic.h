//===- Traffic.h - what a collective moves ---------------------*- C++ -*-===//
//
// Problem: how many bytes leave a rank in a collective? Reports, times and the choice of shardings ask, and must be
// told the same.
//
//   all_gather of 100 bytes over 4 ranks      300 bytes, in 3 steps
//   all_reduce of 100 bytes over 4 ranks      150 bytes, in 6 steps
//
// Rule: members pass on to their neighbour what is not theirs, the least that any algorithm comes by with where no
// switch adds up or copies (Patarasuk and Yuan, Bandwidth optimal all-reduce, JPDC 2009). All else that the compiler
// says of the bytes of a collective follows from these fractions.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_TRAFFIC_H
#define STAGE_MACHINE_TRAFFIC_H

#include <cstdint>

namespace stage {

enum class OpKind : uint8_t;

enum class CollectiveKind : uint8_t {
  AllGather,     ///< Each member's input goes to all others.
  ReduceScatter, ///< Each member keeps one part of the sum.
  AllReduce,     ///< A reduce_scatter, and the all_gather of what it makes.
  AllToAll,      ///< Each member needs one part of what each other one has.
  Permute,       ///< Each member's input goes to one other.
  Broadcast,     ///< One member's input goes to all others; as much moves where all are added up on one.
  Barrier,       ///< Nothing moves, but everyone waits for everyone.
};

/// Of an op that communicates in groups.
CollectiveKind getCollectiveKind(OpKind kind);

/// A part of the bytes that a rank puts in, numerator / denominator of them, sent in so many steps.
struct Traffic {
  int64_t numerator = 1;
  int64_t denominator = 1;
  int64_t steps = 1;

  __int128 roundUp(__int128 bytes) const { return (bytes * numerator + denominator - 1) / denominator; }
};

/// What leaves a member of a group.
Traffic getTraffic(CollectiveKind kind, int64_t members);

/// The same as a multiple of the whole tensor, the larger of what a member puts in and gets out, where the group is so
/// large that a member's own part of it does not count.
int64_t getTrafficOfLargeGroup(CollectiveKind kind);

} // namespace stage

#endif // STAGE_MACHINE_TRAFFIC_H
