//===- Walk.h - all values of a block --------------------------*- C++ -*-===//
#ifndef STAGE_IR_GRAPH_WALK_H
#define STAGE_IR_GRAPH_WALK_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Calls `f` for every value of a block, repeat bodies included, in program order, with the op whose result it is
/// (null: an argument).
inline void forEachValue(const Block &block, llvm::function_ref<void(Value &value, Op *op)> f) {
  for (auto &argument : block.getArguments())
    f(*argument, nullptr);
  for (auto &op : block) {
    for (auto &result : op->getResults())
      f(*result, op.get());
    for (auto &body : op->bodies)
      forEachValue(*body, f);
  }
}

} // namespace stage

#endif // STAGE_IR_GRAPH_WALK_H
