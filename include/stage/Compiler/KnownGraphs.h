//===- KnownGraphs.h - graphs that schedules have in common ----*- C++ -*-===//
//
// Problem: plans that differ in nothing but their schedule have one graph up to the pass that cuts it into stages. A
// search of three schedules makes it three times, which is a seventh of its time.
//
//   known.run(graph, diags)    elaborated before; behind it, all passes in front of partition-pipeline have run
//
// Algorithm: the passes in front of partition-pipeline run on a graph without what a schedule says (GraphInput.h), so
// that they cannot depend on more. The graph is kept with all that it was made from. A plan for which all of that is
// the same gets a copy.
//
// Limits: those of GraphInput. A graph about which anything is said to the user is made for each plan. The last eight
// graphs are kept.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_KNOWNGRAPHS_H
#define STAGE_COMPILER_KNOWNGRAPHS_H

#include "stage/Compiler/GraphInput.h"
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
  struct Known {
    GraphInput input;
    std::shared_ptr<const Graph> graph;
  };
  std::deque<Known> all;
  size_t numShared = 0;
};

} // namespace stage

#endif // STAGE_COMPILER_KNOWNGRAPHS_H
