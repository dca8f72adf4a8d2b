//===- SharedBounds.h - bounds of plans that compute alike -----*- C++ -*-===//
//
// Problem: most plans of a search are too slow because of their microbatches alone. Where optimizer states are and when
// gradients are reduced does not matter for them. Of Llama 405B on 8,192 GPUs 4,900 plans that may fit are
// too slow, and for some 2,000 of them another one says so.
//
//   zero 0, overlap none      compiled: microbatches alone take 14.2 s, and five plans take less
//   zero 1, overlap true      elaborated: the same microbatches, so that no pass runs
//
// Algorithm: a plan that its own bound excludes says what its microbatches take at least (BoundedOps), for all plans
// with the same GraphInput but for rules of gradients, and the same schedule. Such a plan is left out before its passes
// run.
//
// Limits: of one model, one machine and one runtime, which all candidates with bounds have. A schedule whose split
// balances memory depends on where states are. Plans that passes would refuse are too slow here. Bounds are those of a
// few candidates in a row, which one thread compiles, so that the number of threads decides nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEARCH_SHAREDBOUNDS_H
#define STAGE_SEARCH_SHAREDBOUNDS_H

#include "stage/Compiler/GraphInput.h"
#include "stage/Machine/Ticks.h"

namespace stage {

class SharedBounds {
public:
  /// What decides the microbatches of a plan that has just been elaborated, but for its schedule. Nothing: no other
  /// plan has its bound.
  static std::optional<GraphInput> makeInput(const Graph &graph);

  std::optional<Ticks> find(const GraphInput &input, const PipelineInfo &pipeline) const;
  void add(GraphInput input, PipelineInfo pipeline, Ticks least);

private:
  struct Known {
    GraphInput input;
    PipelineInfo pipeline;
    Ticks least = 0;
  };
  std::vector<Known> all;
};

} // namespace stage

#endif // STAGE_SEARCH_SHAREDBOUNDS_H
