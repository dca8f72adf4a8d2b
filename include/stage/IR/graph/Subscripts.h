//===- Subscripts.h - what subscripts ask of sizes -------------*- C++ -*-===//
#ifndef STAGE_IR_GRAPH_SUBSCRIPTS_H
#define STAGE_IR_GRAPH_SUBSCRIPTS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Calls `f` for every quotient of sizes in a subscript of an op's formulas (of the op that it is the backward of): it
/// must be a whole number, or there is no such element. `x[e + size(e)/2]` needs `E/2` whole.
void forEachSubscriptSize(const Op &op, SizeContext &sizes, llvm::function_ref<void(Size)> f);

} // namespace stage

#endif // STAGE_IR_GRAPH_SUBSCRIPTS_H
