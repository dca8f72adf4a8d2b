//===- StageOps.cpp - the ops and parameters of a stage -------------------===//
#include "stage/Walk/StageOps.h"

using namespace stage;

llvm::MapVector<const Value *, int64_t> stage::collectState(const Graph &graph, const StageProgram &stage,
                                                            OpKind kind) {
  llvm::MapVector<const Value *, int64_t> state;
  for (const UnitTemplate &unit : stage.templates)
    forEachOp(unit.items, [&](Op &op, int64_t times) {
      if (op.kind == kind)
        state[op.getResult()] += times;
      for (const Value *operand : op.getOperands())
        if (operand->getOp() && !getLoop(operand) && operand->getOp()->kind == kind)
          state[operand] = 1;
    });
  // What nothing uses belongs to no unit, and is kept where the program begins.
  if (stage.stage == 0)
    for (auto &op : graph.getForward())
      if (op->kind == kind && op->getResult()->getUses().empty())
        state[op->getResult()] = 1;
  return state;
}
