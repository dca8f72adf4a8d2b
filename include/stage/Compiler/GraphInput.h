//===- GraphInput.h - all that passes know of a plan -----------*- C++ -*-===//
//
// Problem: plans of a search have much in common: the same graph in front of stages, or the same products. Whether they
// do is asked before any pass runs.
//
//   GraphInput input(graph);      elaborated, and nothing more
//   known.input == input          the passes in front of partition-pipeline make the same graph of both
//
// Algorithm: the model, the rules, the mesh, all sizes, what is owed, element types, the optimizer, and of the pipeline
// all but what a schedule says: which units there are, their places, chunks and copies, and the split of layers. The
// kinds of units are left, because backward is split where halves of it run. `haveSameSchedule` compares the rest.
//
// Two plans whose inputs differ in nothing but where optimizer states are and when gradients are reduced compute the
// same for a microbatch (`dropGradients`).
//
// Limits: training without layers that units change, dims of slots and blocks of different lengths (`isComplete`).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_GRAPHINPUT_H
#define STAGE_COMPILER_GRAPHINPUT_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Rule.h"

namespace stage {

class GraphInput {
public:
  explicit GraphInput(const Graph &graph);
  /// Nothing that the passes ask for is missing.
  static bool isComplete(const Graph &graph);

  bool operator==(const GraphInput &other) const;
  /// Leaves out the rules that decide nothing about what ranks compute for a microbatch, and send for it, but
  /// gradients. Then the caller must know that the model is the same: whether a backward came with it depends on the
  /// plans before.
  void dropGradients();
  /// What the passes may know of a pipeline: one unit of each kind stands for all.
  const PipelineInfo &getPipeline() const { return pipeline; }

private:
  struct Repeat {
    Size count;
    size_t numBodies;
    IterationCases cases;
    bool operator==(const Repeat &other) const {
      return count == other.count && numBodies == other.numBodies && cases == other.cases;
    }
  };
  std::shared_ptr<const Graph> model;
  std::string name;
  SMLoc loc;
  Mesh mesh;
  std::vector<std::pair<std::string, int64_t>> binding, unpadded;
  std::vector<Obligations::Obligation> obligations;
  std::vector<Rule> rules;
  Precision precision;
  Optimizer optimizer;
  PipelineInfo pipeline;
  unsigned prefetch;
  int64_t microbatches;
  double clip;
  std::vector<std::string> passes; ///< That have run.
  std::vector<Repeat> repeats;     ///< Of the phases that there are before any pass.
  std::vector<Repeat> ofBackward;  ///< Of those that differentiate has made.
};

/// Whether two pipelines run the same units in the same order, and are split in the same way. Those that are balanced
/// may not be split alike, unless their graphs are.
bool haveSameSchedule(const PipelineInfo &a, const PipelineInfo &b);

} // namespace stage

#endif // STAGE_COMPILER_GRAPHINPUT_H
