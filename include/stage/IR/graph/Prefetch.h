//===- Prefetch.h - gathers ahead of several phases ------------*- C++ -*-===//
//
// What one phase has gathered ahead a later one may take, and release. It is there when a unit of that begins, and
// counts among those ahead, of which there are as many as the graph's `prefetch` says and one more.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PREFETCH_H
#define STAGE_IR_GRAPH_PREFETCH_H

#include "stage/IR/graph/Program.h"

namespace stage {

/// How many gathers ahead of earlier phases a unit with these items releases.
uint64_t countHeldAhead(llvm::ArrayRef<ProgramItem> items);

} // namespace stage

#endif // STAGE_IR_GRAPH_PREFETCH_H
