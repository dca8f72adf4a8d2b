//===- MemoryGrowth.h - whether memory can grow with a size ----*- C++ -*-===//
//
// Problem: a state of fixed size fits however long its sequences are. A search for the longest ones that doubles the
// length doubles the number of units of a prefill in chunks each time, for nothing:
//
//   infer(B = 1, S = 1Gi, chunk = 512)      2,097,152 units, all with the same bytes
//
// Algorithm: the symbols that have other values than in the job itself are those that the search moves: positions, room
// of caches. They are given values a million times as large. Memory can grow if a tensor then has other bytes than now.
// A window that is full has not.
//
// Limits: peaks are not computed at such values; sizes are taken to be monotone.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_MEMORYGROWTH_H
#define STAGE_LIB_DRIVER_MEMORYGROWTH_H

#include "stage/IR/graph/Graph.h"
#include <map>

namespace stage::driver {

/// Symbols of sizes with their values, the largest one where units bind several.
using SymbolValues = std::map<std::string, int64_t>;
SymbolValues listSymbols(const Graph &graph);

/// Whether a tensor of the graph can have more bytes under larger values of the symbols that differ from `own`. True if
/// none differs.
bool canMemoryGrow(Graph &graph, const SymbolValues &own);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_MEMORYGROWTH_H
