//===- TaskWalk.h - the nodes of a unit as it is walked --------*- C++ -*-===//
#ifndef STAGE_LIB_TASKS_TASKWALK_H
#define STAGE_LIB_TASKS_TASKWALK_H

#include "stage/Tasks/ClassTasks.h"
#include "stage/Walk/UnitWalk.h"

namespace stage {

/// Numbers and lowers them one after the other.
class ClassTasks::TaskWalk : public UnitWalk {
public:
  TaskWalk(ClassTasks &lowering, unsigned number, Sink sink)
      : lowering(lowering), unit(lowering.units[number]), number(number), id(unit.base), suffix(" " + unit.getName()),
        sink(sink) {}

  void run() {
    if (unit.environment != lowering.bound)
      lowering.select(unit.environment);
    walk(unit.layout->getItems());
  }

protected:
  ClassTasks &lowering;
  const PlacedUnit &unit;
  unsigned number;
  uint64_t id; ///< Of the next node.

private:
  void visitOp(const Op &op) override {
    int64_t iteration = getIteration() ? int64_t(*getIteration()) : -1;
    if (const Op *repeat = op.getBlock()->getParent(); repeat != loop && !op.isPrefetched) {
      loop = repeat;
      lowering.workBeforeLoop = lowering.chains[computation];
    }
    if (op.kind == OpKind::Permute)
      for (bool isSend : {false, true})
        lowering.makePermute(op, unit, number, isSend, iteration, nextId(), suffix, sink);
    else if (unit.layout->hasNode(op))
      lowering.makeOp(op, unit, number, iteration, nextId(), suffix, sink);
  }
  void visitReceive(const ProgramItem &item, unsigned slot, IterationValue) override {
    if (!item.isLocal)
      lowering.makeMessage(unit, number, item, slot, nextId(), suffix, sink);
  }
  void visitSend(const ProgramItem &item, unsigned slot, IterationValue) override {
    if (item.isLocal)
      return;
    lowering.makeMessage(unit, number, item, slot, nextId(), suffix, sink);
    if (item.isBlocking)
      lowering.makeWait(unit, item, slot, nextId(), suffix, sink);
  }
  uint64_t nextId() {
    lowering.additions.setCurrent(id);
    return id++;
  }

  std::string suffix;
  Sink sink;
  const Op *loop = nullptr; ///< That runs.
};

} // namespace stage

#endif // STAGE_LIB_TASKS_TASKWALK_H
