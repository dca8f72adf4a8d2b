//===- Slowness.h - ranks that compute slower than others ------*- C++ -*-===//
//
// Problem: `slow (dp = 3) by 6/5;` makes ranks of one class differ: a straggler. Emission
// asks it of each rank; a report of 131,072 ranks must not.
//
//   slow (dp = 3) by 6/5;      dp = 3, tp = 1: 12/5    2 x 2 rules: 4 factors
//   slow (tp = 1) by 2;        dp = 3: 6/5, tp = 1: 2, all others: 1
//
// Algorithm: factors of rules that hold for a rank multiply. The ranks for which exactly
// the rules S hold are those for which at least S do, minus those for which one more does,
// plus ... (inclusion and exclusion); "at least" is a list of fixed coordinates, which is
// what the sizes of traces are counted for (MeasureTraces.cpp). Rules that no rank has
// together make no such list, so that many single stragglers are many, not 2^many.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_SLOWNESS_H
#define STAGE_TASKS_SLOWNESS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

using FixedCoordinates = llvm::SmallVector<std::pair<AxisId, int64_t>, 2>;

/// How many times as long a rank computes; counted within the graph's mesh.
Size getSlowness(const Graph &graph, int64_t rank);

/// Ranks of one slowness: those with each of these coordinates, so many times (negative: they count elsewhere).
struct SlownessClass {
  Size slowness;
  std::vector<std::pair<FixedCoordinates, int64_t>> sets;
};
/// How the ranks with some coordinates, which are sorted by axis, fall into such classes.
std::vector<SlownessClass> classifyBySlowness(const Graph &graph, const FixedCoordinates &common);

/// False, and reported, if the rules hold together in more ways than are counted.
bool checkSlowRanks(const Graph &graph, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TASKS_SLOWNESS_H
