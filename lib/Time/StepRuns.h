//===- StepRuns.h - when the tasks of a step ran ---------------*- C++ -*-===//
//
// Two walks find when tasks run: StepWalk, task by task, and CompiledWalk, unit by unit. Who asks where time goes asks
// either of them by this interface.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_STEPRUNS_H
#define STAGE_LIB_TIME_STEPRUNS_H

#include "stage/Machine/GroupPlace.h"
#include "stage/Machine/Ticks.h"
#include "stage/Machine/Work.h"
#include "stage/Tasks/Task.h"
#include "stage/Time/Surcharges.h"
#include <optional>

namespace stage {

/// A task of a class, by its id.
struct ClassTask {
  unsigned classNumber;
  uint64_t id;
};

/// What a task is, the same of all tasks of its op.
struct TaskFacts {
  TaskKind kind = TaskKind::Compute;
  const Op *op = nullptr; ///< Null: a message of a stage or part.
  WorkKind work = WorkKind::Elementwise;
  bool isOptimizer = false;
  bool isKernel = false; ///< Compute of the device.
  bool isTaxed = false;  ///< The same, on the main stream.
  bool isWait = false;   ///< Compute that stands behind a send and takes as long.
  uint32_t stream = 0;
  uint64_t bytes = 0; ///< Of what communicates.
  GroupPlace place = 1;

  TaskFacts() = default;
  /// The task must have no slots among its sizes.
  TaskFacts(const Task &task, const GroupPlace &place)
      : kind(task.kind), op(task.op), work(task.work ? task.work->kind : WorkKind::Elementwise),
        isOptimizer(task.work && task.work->isOptimizer), isKernel(task.kind == TaskKind::Compute && !task.runsOnHost),
        isTaxed(isKernel && task.stream == 0), isWait(task.isWait), stream(uint32_t(task.stream)),
        bytes(task.bytes.resolve({})), place(place) {}
};

/// When a task ran.
struct TaskRun {
  const TaskFacts *facts;
  Ticks begin, end;
  std::optional<ClassTask> cause; ///< For what it waited last.
  Surcharge more = {};            ///< The part of its duration that is no price.
};

class StepRuns {
public:
  virtual ~StepRuns() = default;
  virtual TaskRun getRun(ClassTask task) const = 0;
};

} // namespace stage

#endif // STAGE_LIB_TIME_STEPRUNS_H
