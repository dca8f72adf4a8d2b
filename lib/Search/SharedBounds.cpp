//===- SharedBounds.cpp - bounds of plans that compute alike -------------===//
#include "stage/Search/SharedBounds.h"
#include "stage/Schedule/BalancedSplit.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

std::optional<GraphInput> SharedBounds::makeInput(const Graph &graph) {
  if (!GraphInput::isComplete(graph) || graph.pipeline.balance == Balance::Memory)
    return std::nullopt;
  GraphInput input(graph);
  input.dropGradients();
  return input;
}

std::optional<Ticks> SharedBounds::find(const GraphInput &input, const PipelineInfo &pipeline) const {
  auto known =
      llvm::find_if(all, [&](const Known &of) { return of.input == input && haveSameSchedule(of.pipeline, pipeline); });
  return known == all.end() ? std::nullopt : std::optional(known->least);
}

void SharedBounds::add(GraphInput input, PipelineInfo pipeline, Ticks least) {
  all.push_back({std::move(input), std::move(pipeline), least});
}
