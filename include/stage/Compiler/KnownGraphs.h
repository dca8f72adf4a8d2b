//===- KnownGraphs.h - graphs that schedules have in common ----*- C++ -*-===//
//
// Problem: plans that differ in nothing but their schedule have one graph up to the pass that cuts it into stages. A
// search of three schedules makes it three times, which is a seventh of its time.
//
//   known.run(graph, diags)    elaborated before; behind it, all passes in front of partition-pipeline have run
//
// Algorithm: the passes in front of partition-pipeline run on a graph without what a schedule says: which units there
// are, their places, chunks and copies, and the split of layers. The kinds of units are left, because backward is split
// where halves of it run. So the passes cannot depend on more. The graph is kept with all that
// it was made from: the model, the rules, the mesh, all sizes, what is owed, element types, the optimizer and what is
// left of the pipeline. A plan for which all of that is the same gets a copy.
//
// Limits: training without layers that units change, dims of slots and blocks of different lengths. A graph about which
// anything is said to the user is made for each plan. The last eight graphs are kept.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_KNOWNGRAPHS_H
#define STAGE_COMPILER_KNOWNGRAPHS_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Pass/PassManager.h"
#include <deque>

namespace stage {

class KnownGraphs {
public:
  /// Runs the passes in front of partition-pipeline, all of which are left, or gives the graph of a plan that came to
  /// the same. False after errors.
  bool run(std::unique_ptr<Graph> &graph, DiagnosticEngine &diags);
  /// Plans that got the graph of another one.
  size_t getNumShared() const { return numShared; }

private:
  /// All that the passes depend on.
  struct Input {
    explicit Input(const Graph &graph);
    bool operator==(const Input &other) const;

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
    PipelineInfo pipeline; ///< Without what a schedule says.
    unsigned prefetch;
    int64_t microbatches;
    double clip;
    std::vector<std::string> passes; ///< That have run.
    std::vector<Repeat> repeats;     ///< Of all phases.
  };
  struct Known {
    Input input;
    std::shared_ptr<const Graph> graph;
  };
  std::deque<Known> all;
  size_t numShared = 0;
};

} // namespace stage

#endif // STAGE_COMPILER_KNOWNGRAPHS_H
