//===- EqualRuns.h - the part of a schedule that repeats -------*- C++ -*-===//
//
// Problem: a pipeline that is full does the same again and again. A picture need not show 100 equal rounds, but must
// say that there are so many.
//
//   stage 0: F0 F1 B0=== F2 B1=== F3 B2=== F4 B3=== ..         from 2 on: B, F, of 3 units of time, 3 times
//
// Rule: times t and t + period look alike on all stages: units of the same kind and chunk run at both, for as long.
// They are of other microbatches.
//
// Algorithm: the period is the distance from a unit in the middle of stage 0 to a later one of its kind and chunk. Each
// such distance, the nearest `maxCandidates`, is tried from the middle in both directions on all stages. The one that
// covers most time is taken, of equal ones the shortest. Linear in the units for each candidate that the middle does
// not refuse.
//
// Limits: one run, around the middle of stage 0. A schedule such as gpipe has one for each kind of unit, and none is
// found where its middle stands between them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_EQUALRUNS_H
#define STAGE_SCHEDULE_EQUALRUNS_H

#include "stage/Schedule/Schedule.h"

namespace stage {

struct EqualRun {
  int64_t begin = 0, period = 0, count = 0; ///< In the unit of the times; `count` periods follow each other.
  int64_t getEnd() const { return begin + period * count; }
};

/// Nothing if no three periods follow each other. `durations`: by stage and position.
std::optional<EqualRun> findEqualRun(const Schedule &schedule, const ScheduleTimes &times,
                                     llvm::ArrayRef<std::vector<int64_t>> durations);

} // namespace stage

#endif // STAGE_SCHEDULE_EQUALRUNS_H
