//===- CompiledWalk.h - the longest path over units ------------*- C++ -*-===//
//
// Problem: when do the tasks of a step run, and where does the time of its ranks go, without making each task of a
// thousand microbatches?
//
//   units              F0  F1  F2  F3 ...  B0  B1 ...        of a stage
//   made                *   *               *   *            the first ones of each kind (UnitCompiler.h)
//   charged             *   *               *   *            those among other neighbours (UnitCharger.h)
//   evaluated           *   *  *            *   *            those that come to it in another state (CompiledUnit.h)
//   placed              *   *  *   *  ...   *   *  ...       all: a run that is known, so much later
//
// Algorithm: the units of each class are made, and what their tasks take is found. Then each class goes on, unit by
// unit, until it waits for a message that has not been sent or for other classes that run a collective with it; then
// the classes that it has sent something to go on, as in StepWalk. Of a unit that has been placed 50 bytes are kept,
// and with them when each of its tasks ran. What its ranks waited for is charged when it is placed (TimeAccounts.h).
//
// This walk serves reports (TimeReport.h). StepWalk, which goes from task to task, serves who asks for each task or for
// intervals: activities of ranks, durations for traces, prices, servers. It also times what this one cannot, for which
// `serves` is false or `run` says Unsupported: parts of a workload, tasks without a price, and units that wait for each
// other in both directions.
//
// Time: linear in units, with some 0.6 us for each; besides, what is made and what is evaluated.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_COMPILEDWALK_H
#define STAGE_LIB_TIME_COMPILEDWALK_H

#include "TimeAccounts.h"
#include "UnitCompiler.h"
#include "stage/Time/RankActivity.h"
#include "stage/Time/TimedPart.h"
#include <deque>

namespace stage {

class CompiledWalk final : public StepRuns {
public:
  /// Whether it may be able to time these: there is one part.
  static bool serves(llvm::ArrayRef<TimedPart> parts) { return parts.size() == 1; }

  /// All must outlive this.
  CompiledWalk(const TimedPart &part, const TaskOptions &options, DiagnosticEngine &diags);

  /// Before run(): keeps units, so that a caller may ask getTasks() for them afterwards.
  void keepUnits() { keepsUnits = true; }

  /// Before compile() or run(): keeps what prices were found from.
  void keepPrices() { store.keepPrices(); }

  enum class Outcome : uint8_t { Done, Failed, Unsupported };
  /// Failed: after a report.
  Outcome run();
  /// The first part of run(): makes all units, and prices their tasks.
  Outcome compile();
  /// Where prices were kept: whether all tasks take the same on another machine.
  bool hasSamePrices(const Machine &other) const { return store.hasSamePrices(other); }

  Ticks getStep() const { return last; }
  unsigned getNumClasses() const { return unsigned(clocks.size()); }
  const ClassTasks &getTasks(unsigned classNumber) const { return clocks[classNumber].compiler.getTasks(); }
  int64_t getRepresentative(unsigned classNumber) const {
    return connections.program.firstRank + connections.classes.getRepresentative(classNumber);
  }
  const RankClasses &getClasses() const { return connections.classes; }
  /// Once: accounts of a class.
  StageTime takeAccounts(unsigned classNumber);
  bool isInsideTables() const { return store.isInsideTables(); }
  /// Nobody says what some product reaches.
  bool isAssumed() const { return store.isAssumed(); }
  /// Of a class the first task that ends when the step does; of the lowest class that has one.
  std::optional<ClassTask> findLast() const;
  TaskRun getRun(ClassTask task) const override;
  /// What all ranks did.
  StepActivity collect() const;
  /// Visits the chain of causes that ends with a task, backwards: tasks of one op of a class, how many, and what they
  /// take; in the order in which the first of each comes. Not receives.
  using PathVisitor = llvm::function_ref<void(unsigned classNumber, const TaskFacts &, int64_t count, Ticks taken)>;
  void visitPath(ClassTask last, PathVisitor visit) const;

  /// What it has cost.
  struct Counts {
    uint64_t made = 0;      ///< Tasks.
    uint64_t charged = 0;   ///< Units, for links and for taxes.
    uint64_t evaluated = 0; ///< Units.
    uint64_t tasks = 0;     ///< Of those that were evaluated.
    uint64_t placed = 0;    ///< Units.
  };
  Counts getCounts() const;

private:
  /// A unit that has run.
  struct Placed {
    const UnitRun *run;
    Ticks later;          ///< Than the run.
    uint32_t firstSender; ///< In the class's list.
    Ticks getLast() const { return run->last + later; }
  };
  /// In a lane of a unit that runs.
  struct LanePosition {
    uint32_t next = 0;
    std::optional<uint32_t> arrivedAt; ///< The collective of several classes to which it has come.
  };
  struct ClassClock {
    ClassClock(Connections &connections, UnitStore &store, const TaskOptions &options, unsigned number,
               const StepRuns &runs, DiagnosticEngine &diags)
        : compiler(connections, store, options, number, diags), accounts(runs, number) {}

    UnitCompiler compiler;
    UnitList units;
    TimeAccounts accounts;
    Ticks free = 0; ///< When the last compute task ends.
    std::vector<Placed> placed;
    std::vector<ClassTask> senders;                ///< Of the messages of units, one behind the other.
    std::vector<std::unique_ptr<UnitRun>> ownRuns; ///< Of units that are evaluated each.
    llvm::DenseMap<const UnitCharges *, KnownRuns> knownRuns;
    // The unit that comes next, as far as it has come.
    CompiledUnit *unit = nullptr;
    uint64_t firstPermute;    ///< The number of its first one.
    std::vector<Ticks> times; ///< Of references and messages.
    std::vector<ClassTask> nextSenders;
    std::unique_ptr<UnitRun> run;
    uint64_t received = 0;               ///< Messages, one bit each, when it was tried last.
    bool isStarted = false;              ///< It was tried.
    std::vector<LanePosition> positions; ///< By lane.
    std::vector<uint32_t> receives;      ///< That have not ended.
    bool isTouched = false;
    uint64_t numEvaluated = 0, numTasks = 0; ///< Units, and their tasks.

    bool isAtEnd(size_t lane) const { return positions[lane].next == unit->lanes[lane].size(); }
    UnitCharges &getCharges() { return *units[placed.size()].charges; }
    Ticks getEnd(size_t number, uint32_t task) const {
      return units[number].unit->getEnd(*placed[number].run, task) + placed[number].later;
    }
  };
  struct Message {
    Ticks end;
    ClassTask send;
  };
  struct OpenMeeting {
    Ticks begin = 0;                                  ///< When the last of those came that have come.
    std::optional<ClassTask> cause;                   ///< For what that one waited.
    Ticks duration = 0;                               ///< The longest that a class needs.
    std::vector<std::pair<unsigned, size_t>> arrived; ///< Classes, and their lanes.
  };

  bool list(ClassClock &clock);
  void charge();
  void touch(unsigned number);
  bool advance(unsigned number);
  void startUnit(ClassClock &clock);
  bool receive(ClassClock &clock, uint32_t message);
  void send(ClassClock &clock, unsigned number, uint32_t message, Ticks end);
  enum class Progress : uint8_t { Done, Waits, Fails };
  Progress runWhole(ClassClock &clock, unsigned number);
  Progress runLanes(ClassClock &clock, unsigned number);
  bool runReceive(ClassClock &clock, uint32_t task);
  Progress runNext(ClassClock &clock, unsigned number, size_t lane);
  Progress meet(ClassClock &clock, unsigned number, size_t lane, uint32_t shared);
  bool evaluate(const CompiledUnit &unit, UnitRun &run) const;
  void place(ClassClock &clock, unsigned number, const UnitRun &run, Ticks later);
  FixedEntries listFixed(const ClassClock &clock, const CompiledUnit &unit, const UnitRun &run) const;
  void listEntries(ClassClock &clock, const CompiledUnit &unit, UnitRun &run) const;
  /// The channel and the tag of a message of the unit that comes next.
  std::pair<unsigned, uint64_t> locate(const ClassClock &clock, const CompiledUnit::Message &message) const;
  /// A unit that has run, or runs.
  struct UnitView {
    const ClassClock &clock;
    const CompiledUnit &unit;
    const UnitRun &run;
    size_t number;
    const ClassTask *senders;
  };
  UnitView getNext(const ClassClock &clock) const;
  UnitView getView(const ClassClock &clock, size_t unit) const;
  /// The part of a chain of causes that is of one unit.
  struct PathPart {
    struct Link {
      uint32_t facts;
      int64_t count;
      Ticks taken;
    };
    unsigned classNumber;
    std::vector<Link> links;
    int32_t cause;
    int64_t times = 0; ///< So many units have it.
  };
  PathPart listPart(const UnitView &view, unsigned classNumber, uint32_t last) const;
  Ticks getPosted(const UnitView &view, uint32_t task) const;
  std::vector<Activity> listActivities(const ClassClock &clock) const;
  std::optional<ClassTask> getCause(const UnitView &view, unsigned classNumber, int32_t cause) const;

  DiagnosticEngine &diags;
  const Runtime &runtime;
  const bool hasCharges; ///< Tasks may take more than alone.
  bool keepsUnits = false;
  TaskOptions options;
  Connections connections;
  UnitStore store;
  uint64_t numCharged = 0; ///< Units.
  std::deque<ClassClock> clocks;
  std::deque<unsigned> touched;                                    ///< Classes that may go on.
  llvm::DenseMap<std::pair<unsigned, uint64_t>, Message> messages; ///< By channel and tag, until they are received.
  std::vector<OpenMeeting> meetings;
  Ticks last = 0;
};

} // namespace stage

#endif // STAGE_LIB_TIME_COMPILEDWALK_H
