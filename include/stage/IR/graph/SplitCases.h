//===- SplitCases.h - some iterations apart from the others ----*- C++ -*-===//
//
// A strategy may say of some layers what it does not say of others. Iterations of one case of a repeat (Graph.h) for
// which that differs become two cases, in all phases:
//
//   repeat layers [6] do { A }        repeat layers [6] cases (1 * 2, 0 * 4) do { A } or { A }
//
// where the first two are chosen. The copy has values, params and accumulations of its own.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_SPLITCASES_H
#define STAGE_IR_GRAPH_SPLITCASES_H

#include "stage/IR/graph/Graph.h"

namespace stage {

struct SplitCases {
  std::vector<unsigned> chosen; ///< The cases of the chosen iterations.
  std::vector<std::pair<unsigned, unsigned>>
      additions; ///< A case that had both kinds, and the new one of its chosen iterations.
};

/// Splits the cases of a repeat, which has `isChosen.size()` iterations.
SplitCases splitCases(Graph &graph, const Op &repeat, const std::vector<bool> &isChosen);
/// The same for the last one of `count` iterations.
SplitCases splitLastIteration(Graph &graph, const Op &repeat, int64_t count);

} // namespace stage

#endif // STAGE_IR_GRAPH_SPLITCASES_H
