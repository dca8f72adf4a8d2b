//===- TaskDurations.h - what each task takes, for traces -------*- C++ -*-===//
//
// Problem: traces say what nodes take, in two ways: the price of a node alone, from which another program can find the
// time of the step by itself, and whole microseconds with surcharges, which simulators replay.
//
//   chain on one stream    takes 0.4 us, 0.4 us, 0.4 us
//   duration_micros        0, 0, 1
//
// Rule: what is cut off of a duration is added to the next one of its stream, so that a chain is short of less than
// 1 us altogether.
//
// Algorithm: the step is walked once (StepTime.h); 32 bytes are kept of each task of a class of ranks.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_TASKDURATIONS_H
#define STAGE_TIME_TASKDURATIONS_H

#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/RankClasses.h"
#include "stage/Time/TimedPart.h"

namespace stage {

class TaskDurations {
public:
  struct Duration {
    Ticks alone = 0;     ///< Not of receives.
    uint64_t micros = 0; ///< Likewise.
    uint32_t unit = 0;   ///< In the order of the rank.
    uint32_t level = 0;  ///< Of communication: of the network.
    Ticks charged = 0;   ///< With surcharges; of a collective from when its last member comes. Not of receives.
  };
  /// Where a class is from: what makes its tasks.
  struct Origin {
    const Program *program;
    RankClass description;
  };

  /// Of the tasks of a program, or of the parts of a workload, which must outlive this. Null after a report.
  static std::unique_ptr<TaskDurations> find(llvm::ArrayRef<TimedPart> parts, const TaskOptions &options,
                                             DiagnosticEngine &diags);

  /// The class of a rank, which is counted over all parts.
  unsigned findClass(int64_t rank) const;
  const Duration &get(unsigned classNumber, uint64_t id) const { return classes[classNumber][id]; }
  unsigned getNumClasses() const { return classes.size(); }
  llvm::ArrayRef<Duration> getTasks(unsigned classNumber) const { return classes[classNumber]; }
  const Origin &getOrigin(unsigned classNumber) const { return origins[classNumber]; }

  /// Of a rank, which is counted over all parts: its machine, with what the command line has changed, and its runtime.
  const std::string &getMachine(int64_t rank) const { return findPart(rank).machine; }
  const Runtime &getRuntime(int64_t rank) const { return findPart(rank).runtime; }

private:
  struct Part {
    std::string machine;
    Runtime runtime;
    int64_t firstRank;
    unsigned firstClass;
    std::unique_ptr<RankClasses> classes;
  };
  const Part &findPart(int64_t rank) const;

  std::vector<Part> parts;
  std::vector<std::vector<Duration>> classes; ///< By task.
  std::vector<Origin> origins;                ///< By class.
};

} // namespace stage

#endif // STAGE_TIME_TASKDURATIONS_H
