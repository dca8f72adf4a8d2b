//===- Surcharges.h - what nodes take beside each other --------*- C++ -*-===//
//
// Problem: traces carry what each node takes alone. Two communications on one network level are slower beside each
// other, a computation is slower beside a collective, and a device waits for the host that launches small kernels.
// All of it is found from durations alone, before anything runs, so that time is a longest path.
//
//   tax_collective="3/10", compute of 10, 10 and 10 us, a collective of 12 us that waits for the first:
//
//   compute       [0, 10)  [10, 23)             12 us in the queue, 10 of them beside the second: 3 us more
//                                   [23, 33.6)  2 us in the queue: 0.6 us more
//   collective             [10, 22)
//
// Rules, one after the other (docs/internals/Surcharges.md):
//
// 1. Launch. Where the kernels of a unit take longer to launch than to run, the last one takes the rest, too.
//    What takes no time is no kernel.
// 2. Sharing. Two communications of a rank may meet if they are on different streams and one level, in one unit or two
//    that follow each other, and neither waits for the other. For each other stream a communication takes longer by
//    what those that it may meet take, at most by what it takes itself.
// 3. Tax. Computations of the main stream pass by queues of the collectives, sends and copies of each stream. A member
//    joins its queue when the computations for which it waits have passed, and leaves it when a computation waits for
//    it. A computation pays the tax for the longest queue, as far as it is no longer than itself, and shortens each
//    queue by as much as it takes itself.
// 4. Tax of communication. A collective or a send pays for the computations beside it.
//
// Algorithm: nodes that run one after the other, the communications of a stream for example, are a sequence. For each
// one of them, of all others, those for which it waits come first and those that wait for it come last, with those that
// it may meet between. Where these begin and end is found for all nodes of the rank by a sweep over its dependencies
// forwards and one backwards, for one sequence at a time. Sums over what is between are differences of sums from the
// beginning, kept for each level. Queues are independent of each other, as what they lose is known in advance. For n
// nodes with d dependencies on s streams: s (n + d) steps, and s n log n for sums by levels.
//
// Limits: the nodes of a sequence are taken to wait for each other in the order of their ids, as stagec writes them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_SURCHARGES_H
#define STAGE_LIB_TRACE_SURCHARGES_H

#include "NodeTable.h"

namespace stage::trace {

/// How long the nodes of a rank take, with surcharges. The rank carries durations, and has passed verifyTimes without a
/// fault. `mergesStreams`: as if no node named a stream.
std::vector<Ticks> findDurations(const RankTable &rank, bool mergesStreams);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_SURCHARGES_H
