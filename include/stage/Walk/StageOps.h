//===- StageOps.h - what a stage runs and holds ----------------*- C++ -*-===//
#ifndef STAGE_WALK_STAGEOPS_H
#define STAGE_WALK_STAGEOPS_H

#include "stage/IR/graph/Program.h"
#include "llvm/ADT/MapVector.h"

namespace stage {

/// The parameters that a stage holds, or (kind Buffer) the buffers, and how many of each: one per iteration that the
/// stage runs, and one of what stands outside of repeats, however many iterations and chunks use it.
llvm::MapVector<const Value *, int64_t> collectState(const Graph &graph, const StageProgram &stage, OpKind kind);

} // namespace stage

#endif // STAGE_WALK_STAGEOPS_H
