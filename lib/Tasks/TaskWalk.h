//===- TaskWalk.h - the nodes of a unit as it is walked --------*- C++ -*-===//
#ifndef STAGE_LIB_TASKS_TASKWALK_H
#define STAGE_LIB_TASKS_TASKWALK_H

#include "stage/Tasks/ClassTasks.h"
#include "stage/Walk/UnitWalk.h"

namespace stage {

/// Numbers and makes the tasks of a unit one after the other.
class ClassTasks::TaskMaker {
public:
  TaskMaker(ClassTasks &lowering, unsigned number, Sink sink)
      : lowering(lowering), unit(lowering.units[number]), number(number), suffix(" " + unit.getName()), sink(sink) {}

  /// From here on the unit's tasks are made; those of another unit may have been made since the last ones.
  void enter() {
    if (unit.environment != lowering.bound)
      lowering.select(unit.environment);
    if (position)
      lowering.workBeforeLoop = workBeforeLoop;
    else
      workBeforeLoop = lowering.workBeforeLoop;
  }
  /// Of the next task in the unit.
  uint64_t getPosition() const { return position; }
  uint64_t getId() const { return unit.getId(position); }
  /// Goes on so many tasks further on, or back.
  void seek(int64_t tasks) { position += tasks; }

  void make(const Op &op, int64_t iteration) {
    if (const Op *repeat = op.getBlock()->getParent(); repeat != loop && !op.isPrefetched) {
      loop = repeat;
      lowering.workBeforeLoop = workBeforeLoop = lowering.chains[computation];
    }
    if (op.kind == OpKind::Permute)
      for (bool isSend : {false, true})
        lowering.makePermute(op, unit, number, isSend, iteration, nextId(), suffix, sink);
    else if (unit.layout->hasNode(op))
      lowering.makeOp(op, unit, number, iteration, nextId(), suffix, sink);
  }
  void make(const ProgramItem &message, unsigned slot) {
    if (message.isLocal)
      return;
    lowering.makeMessage(unit, number, message, slot, nextId(), suffix, sink);
    if (message.kind == ProgramItem::Kind::Send && message.isBlocking)
      lowering.makeWait(unit, message, slot, nextId(), suffix, sink);
  }

private:
  uint64_t nextId() {
    uint64_t id = unit.getId(position++);
    lowering.additions.setCurrent(id);
    return id;
  }

  ClassTasks &lowering;
  const PlacedUnit &unit;
  unsigned number;
  uint64_t position = 0;
  std::string suffix;
  Sink sink;
  const Op *loop = nullptr; ///< That runs.
  std::optional<uint64_t> workBeforeLoop;
};

/// Makes the tasks of a unit in its own order.
class ClassTasks::TaskWalk : public UnitWalk {
public:
  TaskWalk(ClassTasks &lowering, unsigned number, Sink sink)
      : lowering(lowering), unit(lowering.units[number]), maker(lowering, number, sink) {}

  void run() {
    maker.enter();
    walk(unit.layout->getItems());
  }

protected:
  ClassTasks &lowering;
  const PlacedUnit &unit;
  TaskMaker maker;

private:
  void visitOp(const Op &op) override { maker.make(op, getIteration() ? int64_t(*getIteration()) : -1); }
  void visitReceive(const ProgramItem &item, unsigned slot, IterationValue) override { maker.make(item, slot); }
  void visitSend(const ProgramItem &item, unsigned slot, IterationValue) override { maker.make(item, slot); }
};

} // namespace stage

#endif // STAGE_LIB_TASKS_TASKWALK_H
