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

  /// Start times of the units that ran. A list shorter than the stage's is a stage that is stuck. The units of a pair
  /// are said to run one after the other, from when both can begin.
  const std::vector<std::vector<int64_t>> &getStart() const { return start; }
  /// When the messages of these units leave: when the unit ends, or its pair.
  const std::vector<std::vector<int64_t>> &getEnds() const { return endsOfUnits; }
  const std::vector<int64_t> &getBusy() const { return busy; }
  int64_t getMakespan() const { return makespan; }
  /// Of a stuck stage: the position of the unit that waits. Of a pair it may be either.
  unsigned findBlocked(unsigned stage) const;
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
  size_t getIndex(unsigned virtualStage, unsigned microbatch, bool forward) const {
    return (size_t(virtualStage) * schedule.microbatches + microbatch) * 2 + forward;
  }
  int64_t &endOf(unsigned virtualStage, unsigned microbatch, bool forward) {
    return ends[getIndex(virtualStage, microbatch, forward)];
  }
  /// What the unit needs of another virtual stage is there.
  bool isReady(unsigned stage, const Unit &unit) const {
    std::optional<Need> need = getNeed(stage, unit);
    return !need || ends[getIndex(need->virtualStage, unit.microbatch, need->forward)] >= 0;
  }

  const Schedule &schedule;
  std::vector<std::pair<unsigned, unsigned>> places;
  std::vector<std::optional<unsigned>> before, behind; ///< Neighbours by virtual stage: asked of each unit.
  std::vector<int64_t> ends;                           ///< Of forward and input gradients, -1 before.
  std::vector<std::vector<int64_t>> start, endsOfUnits;
  std::vector<int64_t> busy;
  int64_t makespan = 0;
};

} // namespace stage

#endif // STAGE_LIB_SCHEDULE_EXECUTION_H
