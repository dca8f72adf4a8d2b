//===- StageOps.cpp - the ops and parameters of a stage -------------------===//
#include "StageOps.h"

using namespace stage;

static void visitOps(const Graph &graph, Op &op, int64_t times, llvm::function_ref<void(Op &, int64_t)> f) {
  f(op, times);
  if (!op.body)
    return;
  for (auto &inner : *op.body) {
    int64_t count = 1;
    if (inner->body) {
      SizeValue value = evaluateCount(inner->count, graph.binding);
      count = value ? int64_t(value.value.num) : 0;
    }
    visitOps(graph, *inner, times * count, f);
  }
}

void stage::forEachOp(const Graph &graph, const std::vector<ProgramItem> &items,
                      llvm::function_ref<void(Op &, int64_t)> f) {
  for (const ProgramItem &item : items)
    if (item.op)
      visitOps(graph, *item.op, item.kind == ProgramItem::Kind::Loop ? item.end - item.begin : 1, f);
}

llvm::MapVector<const Value *, int64_t> stage::collectParams(const Graph &graph, const StageProgram &stage) {
  llvm::MapVector<const Value *, int64_t> params;
  for (const UnitTemplate &unit : stage.templates)
    forEachOp(graph, unit.items, [&](Op &op, int64_t times) {
      if (op.kind == OpKind::Param)
        params[op.getResult()] += times;
      for (const Value *operand : op.getOperands())
        if (!getLoop(operand) && operand->getOp()->kind == OpKind::Param)
          params[operand] = 1;
    });
  // A parameter that nothing uses belongs to no unit, and is kept where the program begins.
  if (stage.stage == 0)
    for (auto &op : graph.forward)
      if (op->kind == OpKind::Param && op->getResult()->getUses().empty())
        params[op->getResult()] = 1;
  return params;
}
