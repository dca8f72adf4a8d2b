//===- StageOps.h - the ops and parameters of a stage ----------*- C++ -*-===//
#ifndef STAGE_LIB_MEMORY_STAGEOPS_H
#define STAGE_LIB_MEMORY_STAGEOPS_H

#include "stage/IR/Program.h"
#include "llvm/ADT/MapVector.h"

namespace stage {

/// Calls `f` for every op that the items run, repeats and the ops of their bodies among them, with how often one run
/// of the items runs it.
void forEachOp(const std::vector<ProgramItem> &items, llvm::function_ref<void(Op &op, int64_t times)> f);

/// The parameters that a stage holds, and how many of each: one per iteration that the stage runs, and one of a
/// parameter outside of repeats, however many chunks use it.
llvm::MapVector<const Value *, int64_t> collectParams(const Graph &graph, const StageProgram &stage);

} // namespace stage

#endif // STAGE_LIB_MEMORY_STAGEOPS_H
