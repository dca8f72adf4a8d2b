//===- ExposedCommunication.cpp - messages that nothing hides -------------===//
#include "stage/IR/graph/ExposedCommunication.h"

using namespace stage;

bool stage::isExposedBy(const Graph &graph, const Op &op, const Rule &rule) {
  if (rule.kind != RuleKind::OverlapNothing || !isCommunication(op.kind) || op.stream)
    return false;
  AxisSet along = 0;
  for (AxisId axis : op.axes)
    if (graph.mesh[axis].size > 1)
      along |= AxisSet(1) << axis;
  return along && !(along & ~toSet(rule.axes));
}

bool stage::isExposed(const Graph &graph, const Op &op) {
  return llvm::any_of(graph.rules, [&](const Rule &rule) { return isExposedBy(graph, op, rule); });
}
