//===- Execution.h - running a schedule ------------------------*- C++ -*-===//
//
// Private to lib/Schedule. The one place that knows what a unit waits for.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SCHEDULE_EXECUTION_H
#define STAGE_LIB_SCHEDULE_EXECUTION_H

#include "stage/Schedule/Schedule.h"

namespace stage {

/// Runs every stage's list in order, as far as it gets.
class Execution {
public:
  /// The schedule's lists name existing chunks and microbatches only, and its placement can be inverted.
  Execution(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration);

  /// Start times of the units that ran. A list shorter than the stage's is a stage that is stuck.
  const std::vector<std::vector<int64_t>> &getStart() const { return start; }
  const std::vector<int64_t> &getBusy() const { return busy; }
  int64_t getMakespan() const { return makespan; }
  bool isStuck(unsigned stage) const { return start[stage].size() < schedule.units[stage].size(); }

  /// What a unit needs of another virtual stage: forward (or else the input gradients) of the unit's microbatch.
  struct Need {
    unsigned virtualStage;
    bool forward;
  };
  std::optional<Need> getNeed(unsigned stage, const Unit &unit) const;
  /// The stage and chunk of a virtual stage.
  std::pair<unsigned, unsigned> locate(unsigned virtualStage) const { return places[virtualStage]; }

private:
  int64_t &endOf(unsigned virtualStage, unsigned microbatch, bool forward) {
    return ends[(size_t(virtualStage) * schedule.microbatches + microbatch) * 2 + forward];
  }

  const Schedule &schedule;
  std::vector<std::pair<unsigned, unsigned>> places;
  std::vector<int64_t> ends; ///< Of forward and input gradients, -1 before.
  std::vector<std::vector<int64_t>> start;
  std::vector<int64_t> busy;
  int64_t makespan = 0;
};

} // namespace stage

#endif // STAGE_LIB_SCHEDULE_EXECUTION_H
