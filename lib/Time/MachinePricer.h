//===- MachinePricer.h - what tasks take on a machine ----------*- C++ -*-===//
//
// Prices tasks as they are taken up, adds surcharges once all are known, and keeps when each ran where somebody asks.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_MACHINEPRICER_H
#define STAGE_LIB_TIME_MACHINEPRICER_H

#include "StepWalk.h"
#include "stage/Machine/Runtime.h"
#include "stage/Time/Surcharges.h"

namespace stage {

/// What a task takes alone on the ranks of a class, which are so slow.
std::optional<Ticks> findPrice(const Task &task, const Machine &machine, const Runtime &runtime,
                               const std::optional<Rational> &slowness, const GroupPlace &place,
                               llvm::StringRef &missing);
/// Tasks may take more than their prices: two of communication may run beside each other, or something is taxed.
bool hasSurcharges(const TimedPart &part);

class MachinePricer : public TaskPricer, public StepRuns {
public:
  MachinePricer(bool keepsRuns, DiagnosticEngine &diags) : diags(diags), keepsRuns(keepsRuns) {}

  /// A task of a class, by its id: what it is, and when it ran.
  struct PricedTask : TaskFacts {
    Ticks begin = 0, end = 0;
    std::optional<ClassTask> cause; ///< For what it waited last.
  };

  /// Before the walk runs, which must outlive this.
  void setWalk(const StepWalk &asked);
  bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) override;
  void takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                   const WaitingTask &waiting) override;
  bool needsAll() const override { return surcharges; }
  void settle() override;
  Ticks getDuration(unsigned classNumber, const WaitingTask &task) const override;
  void run(unsigned classNumber, const WaitingTask &task, Ticks begin, Ticks end,
           std::optional<ClassTask> cause) override;

  unsigned getNumClasses() const { return unsigned(classes.size()); }
  llvm::ArrayRef<TimedTask> getTasks(unsigned classNumber) const { return classes[classNumber].tasks.get(); }
  llvm::ArrayRef<PricedTask> getRuns(unsigned classNumber) const { return classes[classNumber].runs; }
  TaskRun getRun(ClassTask task) const override {
    const PricedTask &run = classes[task.classNumber].runs[task.id];
    return {&run, run.begin, run.end, run.cause, getSurcharge(task.classNumber, task.id)};
  }
  Surcharge getSurcharge(unsigned classNumber, uint64_t id) const {
    const auto &list = classes[classNumber].surcharges;
    return list.empty() ? Surcharge() : list[id];
  }
  /// Every op and collective lies inside the tables of the machine.
  bool isInsideTables() const { return insideTables; }
  /// Nobody says what some product reaches.
  bool isAssumed() const { return assumed; }

private:
  struct PricedClass {
    TimedTasks tasks;
    std::vector<Surcharge> surcharges;
    std::vector<PricedTask> runs;
    std::map<std::pair<uint64_t, unsigned>, unsigned> lanes;
    std::optional<Rational> slowness;
  };
  PricedClass &getClass(unsigned number);
  TimedTask &add(unsigned classNumber, const WaitingTask &waiting);

  DiagnosticEngine &diags;
  const StepWalk *walk = nullptr;
  bool surcharges = false; ///< Tasks may take more than their prices, of some part.
  bool keepsRuns;
  bool insideTables = true;
  bool assumed = false;
  std::vector<PricedClass> classes;
};

} // namespace stage

#endif // STAGE_LIB_TIME_MACHINEPRICER_H
