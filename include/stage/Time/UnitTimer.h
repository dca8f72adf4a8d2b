//===- UnitTimer.h - how long units take, one after the other ---*- C++ -*-===//
//
// Problem: which iterations a server runs depends on how long they last, so that each is timed before the next one is
// known.
//
//   auto timer = UnitTimer::create({&program, machine, runtime}, diags);    a unit of a prompt and one of a decode step
//   timer->run({i0}, 0, busy)       12.1 ms
//   timer->run({i1}, 0, busy)       11.7 ms              behind i0
//
// Algorithm: tasks of a program with one unit of each kind are walked once (StepWalk.h). They come in an order in which
// each stands behind those for which it waits, which is a list of nodes per kind of unit and stage. What a node
// computes or sends is an expression over what units bind. For another unit each expression is evaluated once, tasks
// are priced as those of any program, and the longest path is found in one pass over the list. Between units only the
// ends of streams are kept: a unit waits for earlier ones by its streams, and by the messages of the stage before.
//
// Limits: collectives of several stages are timed as if each stage ran its own. Surcharges of a unit follow from its
// tasks and from those of the unit before, because the next one is not known (UnitSurcharges.h in lib/Time).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_UNITTIMER_H
#define STAGE_TIME_UNITTIMER_H

#include "stage/Schedule/PackedUnit.h"
#include "stage/Support/Diagnostics.h"
#include "stage/Time/TimedPart.h"
#include <memory>

namespace stage {

class UnitTimer {
public:
  /// Null after a report. The program has a unit of each kind that will be run, and must outlive the timer. The machine
  /// is declared.
  static std::unique_ptr<UnitTimer> create(const TimedPart &part, DiagnosticEngine &diags);
  ~UnitTimer();

  /// Runs units one after the other. All times are ticks from now. `busy`: when each stage finishes its earlier units;
  /// then, when it finishes these. `given` is added once per stage, before the first unit. Returns when the last task
  /// or message ends; nothing after a report.
  std::optional<Ticks> run(llvm::ArrayRef<PackedUnit> units, Ticks given, llvm::MutableArrayRef<Ticks> busy);
  /// Goes on where another timer of the job ends. False after a report.
  bool continueFrom(const UnitTimer &before);
  /// Moves "now" forward.
  void pass(Ticks time);
  /// Nothing has run.
  void restart();
  /// Every op and collective of the units so far lies inside the tables of the machine.
  bool isInsideTables() const;

private:
  class Recorder;
  explicit UnitTimer(std::unique_ptr<Recorder> recorder);

  std::unique_ptr<Recorder> recorder;
  std::vector<Ticks> lanes;           ///< For how long each stream of each class is busy.
  std::optional<PackedUnit> lastUnit; ///< The one that ran last.
};

} // namespace stage

#endif // STAGE_TIME_UNITTIMER_H
