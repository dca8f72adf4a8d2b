//===- StepTimeline.h - when each task of a step runs ----------*- C++ -*-===//
//
// Problem: a report says how long a rank waits; a picture shows when, and for what. Who draws it needs all tasks, with
// the times that the report adds up, and must not find these a second time.
//
//   std::unique_ptr<StepTimeline> step = StepTimeline::find({&program}, machine, runtime, diags);
//   for (unsigned number = 0; number < step->getNumClasses(); ++number)
//     step->visit(number, [](const TimedRun &run) { ... }, [](TimeAccount account, Ticks begin, Ticks end) { ... });
//
//   class 0, lane compute          F0 linear [0, 4)   F0 linear [6, 9)
//   class 0, lane communication    F0 all_gather [2, 6)
//   class 0, wait                  exposed [4, 6)
//
// Rule: the compute tasks of a class, without their surcharges, and its waits add up to the accounts of
// stage/Time/TimeReport.h. Tasks of a lane run one after the other. Receives take no time of their own and are on no
// lane, so they are left out.
//
// Algorithm: the walk of the report is kept: CompiledWalk where that one serves, else StepWalk. A visit goes through
// the tasks of a class in their order, and charges waits as the report does.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_STEPTIMELINE_H
#define STAGE_TIME_STEPTIMELINE_H

#include "stage/Time/Surcharges.h"
#include "stage/Time/TimeReport.h"
#include "stage/Time/TimedPart.h"
#include <compare>

namespace stage {

/// Something of a rank that runs one task at a time.
struct TimedLane {
  enum class Kind : uint8_t { Compute, Communication, Copies, Host };
  Kind kind = Kind::Compute;
  uint32_t stream = 0; ///< Number of a stream that the graph declares, from 1; 0: that of its kind.

  /// The lane of whose time each tick is of an account.
  bool isMain() const { return kind == Kind::Compute && stream == 0; }
  auto operator<=>(const TimedLane &other) const = default;
};
/// `compute`, `communication`, or the name of a stream that the program declares.
std::string getName(const TimedLane &lane, const Program &program);

/// When a task ran.
struct TimedRun {
  TimedLane lane;
  TaskKind kind = TaskKind::Compute;
  const Op *op = nullptr;                      ///< Null: a message of a stage or part.
  TimeAccount account = TimeAccount::Products; ///< Of compute on the device.
  unsigned unit = 0;                           ///< In ClassTasks::getUnits.
  unsigned node = 0;                           ///< Of the unit.
  Ticks begin = 0, end = 0;
  Surcharge more; ///< The part of its duration that is no price.

  /// `layers.mlp.g gate_up`; `message`.
  std::string getName() const;
};

class StepTimeline {
public:
  /// Of a program, or of the parts of a workload. All must outlive this; machines must be declared ones. Null after a
  /// report.
  static std::unique_ptr<StepTimeline> find(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags);
  ~StepTimeline();

  Ticks getStep() const { return step; }
  int64_t getNumRanks() const { return numRanks; }
  /// Every product, attention and collective lies inside the machine's tables.
  bool isInsideTables() const { return insideTables; }
  const std::string &getMachine() const { return machine; } ///< With changes, as the next one.
  const std::string &getRuntime() const { return runtime; }

  /// Classes of ranks that do the same at the same times (stage/Time/RankClasses.h).
  unsigned getNumClasses() const;
  const ClassTasks &getTasks(unsigned classNumber) const;
  const Program &getProgram(unsigned classNumber) const;
  /// The rank that stands for a class, counted over all parts.
  int64_t getRepresentative(unsigned classNumber) const;

  using RunSink = llvm::function_ref<void(const TimedRun &run)>;
  using WaitSink = llvm::function_ref<void(TimeAccount account, Ticks begin, Ticks end)>;
  /// Shows the tasks of a class in their order, and the waits of its main lane. Returns its accounts, whose program,
  /// stage and rank are set.
  StageTime visit(unsigned classNumber, RunSink runs, WaitSink waits) const;

private:
  class Walked;
  class ByUnit;
  class ByTask;
  StepTimeline();

  std::unique_ptr<Walked> walked;
  Ticks step = 0;
  int64_t numRanks = 0;
  bool insideTables = false;
  std::string machine, runtime;
};

} // namespace stage

#endif // STAGE_TIME_STEPTIMELINE_H
