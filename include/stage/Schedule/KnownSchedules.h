//===- KnownSchedules.h - schedules that need no second check --*- C++ -*-===//
//
// Problem: plans of a search differ in shardings, state and recomputation, and many have the same schedule: 7,600 plans
// have 120. To check one takes as long as to run it.
//
//   known.check(schedule, diags)      checkSchedule, of equal schedules once
//   known.post(schedule, work, ...)   postRecvs, of equal schedules with equal work once
//
// Algorithm: what was right is kept with all that it was decided from: the lists of units, their placement and counts.
// What is wrong is not kept, so that each plan has its messages. The last 64 schedules are kept.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_KNOWNSCHEDULES_H
#define STAGE_SCHEDULE_KNOWNSCHEDULES_H

#include "stage/Schedule/Schedule.h"
#include <deque>

namespace stage {

class KnownSchedules {
public:
  /// What checkSchedule says.
  bool check(const Schedule &schedule, DiagnosticEngine &diags);

  /// What postRecvs says of a schedule that is right, and of `listPosts`. All that `listPosts` and `communicates`
  /// depend on beside the schedule is in `work`, in any form.
  std::optional<RecvPosts> post(const Schedule &schedule, const std::vector<bool> &work,
                                llvm::function_ref<RecvPosts()> listPosts,
                                llvm::function_ref<bool(unsigned stage, const Unit &unit)> communicates,
                                DiagnosticEngine &diags);

private:
  /// What a unit is to both functions.
  struct UnitKey {
    unsigned microbatch, chunk;
    PhaseKind kind;
    bool overlapsNext;
    bool isOf(const Unit &unit) const {
      return microbatch == unit.microbatch && chunk == unit.chunk && kind == unit.kind &&
             overlapsNext == unit.overlapsNext;
    }
  };
  struct Known {
    explicit Known(const Schedule &schedule);
    bool isOf(const Schedule &schedule) const;

    Schedule counts; ///< Without units.
    std::vector<std::vector<UnitKey>> units;
    bool isRight = false;
    std::vector<std::pair<std::vector<bool>, RecvPosts>> posts; ///< By work.
  };
  Known &find(const Schedule &schedule);

  std::deque<Known> all;
};

} // namespace stage

#endif // STAGE_SCHEDULE_KNOWNSCHEDULES_H
