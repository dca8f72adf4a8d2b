//===- GroupIterations.h - several iterations as one -----------*- C++ -*-===//
//
// A strategy may have several layers in a row made again together. Iterations of a repeat become groups, in all phases:
//
//   repeat layers [6] (%x) do {              repeat layers [3] (%x) do {
//     %y "layers.y" = linear(%x, %w)           %y "layers.0.y" = linear(%x, %w)
//     yield %y                                 %z "layers.1.y" = linear(%y, %v)
//                                              yield %z
//
// A group has a copy of the body of each of its iterations, with values, params and accumulations of its own, whose
// paths say which member of the group they are; patterns do not (PathPattern). Phases that run from the last iteration
// to the first run so within a group. Groups of other lengths, or of layers that differ, are cases.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_GROUPITERATIONS_H
#define STAGE_IR_GRAPH_GROUPITERATIONS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// `lengths` are together the iterations of the repeat, which has none inside of it.
void groupIterations(Graph &graph, const Op &repeat, llvm::ArrayRef<int64_t> lengths);

} // namespace stage

#endif // STAGE_IR_GRAPH_GROUPITERATIONS_H
