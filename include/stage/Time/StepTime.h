//===- StepTime.h - how long a step takes -----------------------*- C++ -*-===//
//
// Problem: when does each task of a program run, and when does the last one end, on a machine?
//
//   std::optional<StepActivity> step = findStepTime({{&program, machine, runtime}}, TaskOptions(), diags);
//   print(os, *step, machine);                 // the text of `stage-trace timeline` for the traces of the program
//
// Rule: time is a longest path over tasks (stage/Tasks/ClassTasks.h). A task begins when all tasks for which it waits
// have ended, and takes what the machine says. A collective begins when that holds on all members of its group. A send
// begins by itself; a receive ends with the send, or when it is posted, whichever is later. Nothing else decides a
// time: of the tasks of one stream each waits for the one before (rule W1).
//
// Algorithm: one rank of each class is walked (RankClasses.h), and units that have the same tasks are made once
// (CompiledWalk.h in lib/Time); then what all tasks of a class do is added up, some 20 ns each. Parts of a workload are
// walked task by task (StepWalk.h). On each stream tasks end in their order; a class goes on until each of its streams
// waits for another class, and is taken up again when that one has sent or come to a collective.
//
// Limits: time grows with tasks of a rank; it does not grow with ranks. Sends are buffered. Streams are those of the
// program.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_STEPTIME_H
#define STAGE_TIME_STEPTIME_H

#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/RankActivity.h"
#include "stage/Time/TimedPart.h"

namespace stage {

/// What a task takes. `place`: of the group of a collective, or of sender and receiver. Nothing where a rate is needed
/// that was not said, whose name is then in `missing`. The task must have no slots among its sizes.
std::optional<Ticks> findDuration(const Task &task, const Machine &machine, const GroupPlace &place,
                                  llvm::StringRef &missing);

/// What a message takes between two machines (TimedPart.h). `lacking`: the machine that lacks a rate.
std::optional<Ticks> findDurationBetween(const Task &task, const Machine &own, const Machine &other,
                                         llvm::StringRef &missing, const Machine *&lacking);

/// Reports that the rate `missing` was not given: at the task's op, or at `loc` for a message between stages.
void reportMissingRate(const Task &task, const Machine &machine, SMLoc loc, llvm::StringRef missing,
                       DiagnosticEngine &diags);

/// For people, what a task of an op is of and does: `layers.mlp.g gate_up`, `layers.h all_gather`.
std::string describeOp(const Op &op);

/// The parts on their machines as all ranks there fill them (Machine::usedBy), which walks take. Empty after a report:
/// ranks are slow in too many ways, steps are too many, or a machine has no room for the ranks.
std::vector<TimedPart> findUsed(llvm::ArrayRef<TimedPart> parts, const TaskOptions &options, DiagnosticEngine &diags);

/// What ranks do in a step, or in as many as the options say, of a program or of the parts of a workload. Of the
/// options names and `orderAsData` say nothing here. Nothing after a report.
std::optional<StepActivity> findStepTime(llvm::ArrayRef<TimedPart> parts, const TaskOptions &options,
                                         DiagnosticEngine &diags);
/// The same, always from task to task, for tests.
std::optional<StepActivity> findStepTimeByTask(llvm::ArrayRef<TimedPart> parts, const TaskOptions &options,
                                               DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TIME_STEPTIME_H
