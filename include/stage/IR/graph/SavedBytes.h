//===- SavedBytes.h - what backward needs of forward -----------*- C++ -*-===//
#ifndef STAGE_IR_GRAPH_SAVEDBYTES_H
#define STAGE_IR_GRAPH_SAVEDBYTES_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// A value that forward keeps for backward.
struct SavedValue {
  const Value *value = nullptr;
  Size bytes; ///< On one rank, in global symbols.
};

/// What one iteration of a repeat keeps for backward, or (no loop) what is kept outside of repeats.
struct SavedBytes {
  const Op *loop = nullptr;
  std::optional<unsigned> caseNumber; ///< Of the iteration, if the repeat has several.
  MemorySpace space = MemorySpace::Device;
  Size bytes;
  std::vector<SavedValue> values; ///< In the order of the program.
};

/// What backward needs of forward, symbolically. Values that are one tensor (what an iteration hands to the next) or
/// a view of another count once.
std::vector<SavedBytes> collectSavedBytes(Graph &graph);

} // namespace stage

#endif // STAGE_IR_GRAPH_SAVEDBYTES_H
