//===- LayerOps.h - the ops of one layer -----------------------*- C++ -*-===//
//
// Problem: a graph of a model has hundreds of ops, and a reader asks about one layer, or one module of it.
//
//   layers           one iteration of the repeat `layers`: the first
//   layers[3]        iteration 3, where layers differ
//   layers.attn      of it what stands in the module `attn`
//   head             a module outside of any repeat
//
// Rule: an op belongs to a module if its scope, or the path of one of its results, is the module's or begins with it. A
// reshard belongs to it, too, if an op of the module uses what it makes. Of each phase there is a list, in the order of
// the graph.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_LAYEROPS_H
#define STAGE_IR_GRAPH_LAYEROPS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

struct LayerOps {
  struct Phase {
    PhaseKind kind;
    std::vector<const Op *> ops; ///< Not empty; without yields, and without repeats: nested ones give their ops.
  };
  std::string path;
  std::vector<Phase> phases; ///< Those that have ops of the layer.
};

/// The ops of a layer. Nothing if no op has such a path.
std::optional<LayerOps> findLayer(const Graph &graph, llvm::StringRef path);
/// The paths of repeats and of modules of the forward, in the order of the graph; not of operators in them.
std::vector<std::string> listLayers(const Graph &graph);

} // namespace stage

#endif // STAGE_IR_GRAPH_LAYEROPS_H
