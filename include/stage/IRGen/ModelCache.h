//===- ModelCache.h - graphs of models, made once for many plans *- C++ -*-===//
//
// Problem: the plans of a table share their model; only the strategy differs. The graph of
// a model, its operators and its backward need not be made again for each.
//
//   stagec job.stg -D tp=1,2,4,8 --report      one graph, four copies
//   stagec job.stg -D L=16,32 --report         one graph if nothing asks for L, else two
//
// Algorithm: the graph of a model is kept with everything that it was made from: the model
// with its arguments, the element types, what was asked of the values of sizes (recorded
// while it was made, so that nothing can be forgotten), and the mesh if axes of it are
// named. A plan for which all of that is the same gets a copy. The first plan of a model
// makes the graph; the second one has the backward made, too, as there may be more.
//
// Limits: a model about which anything is said to the user is made for each plan, so that
// it is said of each. The last sixteen graphs are kept.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IRGEN_MODELCACHE_H
#define STAGE_IRGEN_MODELCACHE_H

#include "stage/IR/graph/Graph.h"
#include "stage/Sema/Job.h"
#include "stage/Symbolic/SizeQueries.h"
#include <deque>

namespace stage {

class ModelCache {
public:
  /// `differentiate` makes the backward of a kept graph, and says what is wrong.
  explicit ModelCache(void (*differentiate)(Graph &graph, DiagnosticEngine &diags)) : differentiate(differentiate) {}

  /// Gives a graph that has the job's types, mesh and sizes its model, with a backward where that is made already.
  /// False if none is kept that this job would come to as well.
  bool find(Graph &graph, const sema::BoundJob &job);
  /// Makes the model of a job by `lower`, for a graph that has everything else, and keeps it. False after errors.
  bool make(Graph &graph, const sema::BoundJob &job, DiagnosticEngine &diags,
            llvm::function_ref<bool(Graph &model, bool &namesAxes)> lower);

private:
  struct Model {
    const ast::JobDecl *decl;
    const ast::ModuleDecl *module;
    std::vector<sema::NamedValue> arguments, stepDims;
    Precision precision;
    bool isTraining;
    /// What the job owes before the model is made.
    std::vector<Obligations::Obligation> before;
    SizeQueries queries;
    /// The axes and aliases that annotations may name, and which have size 1; nothing if none does.
    std::optional<std::string> mesh;
    std::shared_ptr<Graph> graph;
    bool isFinished = false; ///< Backward was made, or could not be.
  };
  static bool isFor(const Model &model, const Graph &graph, const sema::BoundJob &job);
  void finish(Model &model);

  void (*differentiate)(Graph &graph, DiagnosticEngine &diags);
  std::deque<Model> models;
};

} // namespace stage

#endif // STAGE_IRGEN_MODELCACHE_H
