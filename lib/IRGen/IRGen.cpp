//===- IRGen.cpp - from a bound job to graph IR ---------------------------===//
#include "stage/IRGen/IRGen.h"
#include "ModuleLowering.h"

using namespace stage;

static void lowerPrecision(Graph &graph, const sema::BoundPrecision &bound) {
  graph.precision.weight = *parseDType(bound.weight.name);
  graph.precision.activation = *parseDType(bound.activation.name);
  graph.precision.gradient = *parseDType(bound.gradient.name);
  graph.precision.master = *parseDType(bound.master.name);
  graph.precision.separateAccumulation = bound.separateAccumulation;
}

static void lowerOptimizer(Graph &graph, const sema::BoundOptimizer &bound) {
  graph.optimizer.name = bound.decl->name.name.str();
  graph.optimizer.loc = bound.decl->loc();
  graph.optimizer.flops = bound.flops;
  for (const sema::OptimizerState &state : bound.states)
    graph.optimizer.states.emplace_back(state.name.name.str(),
                                        parseDType(state.dtype).value_or(graph.precision.master));
}

std::unique_ptr<Graph> stage::generateGraph(const sema::Program &program, const sema::BoundJob &job, SizeContext &sizes,
                                            const SizeBinding &binding, const Obligations &obligations,
                                            DiagnosticEngine &diags, ModelCache *models) {
  auto graph = std::make_unique<Graph>(sizes);
  graph->name = job.model->name.name.str();
  graph->loc = job.model->loc();
  graph->binding = binding;
  graph->obligations = obligations;
  graph->microbatches = job.microbatches;
  graph->clip = job.clip;
  graph->training = job.isTraining;
  lowerPrecision(*graph, job.precision);
  lowerMesh(*graph, job);
  if (job.optimizer)
    lowerOptimizer(*graph, *job.optimizer);
  sema::Evaluator evaluator(program, sizes, graph->binding, graph->obligations, diags);
  evaluator.setPhase({/*decoding=*/false, /*continuing=*/false, /*inferring=*/job.inference.has_value()});
  evaluator.setModel(job.model); // what a strategy says may ask for it: `let n = if has(V) { 2 } else { 1 };`
  if (!padDims(*graph, job, evaluator))
    return nullptr;
  auto lowerModel = [&](Graph &model, bool &namesAxes) {
    sema::Evaluator inModel(program, sizes, model.binding, model.obligations, diags);
    ModuleLowering lowering(model, inModel, job);
    bool good = lowering.lowerModel();
    namesAxes = lowering.namesAxes();
    return good;
  };
  bool namesAxes = false;
  if (job.inference)
    models = nullptr; // its phases are of this job
  bool hasModel = models && (models->find(*graph, job) || models->make(*graph, job, diags, lowerModel));
  if (!hasModel && (models || !lowerModel(*graph, namesAxes)))
    return nullptr;
  if (!lowerStrategy(*graph, job, evaluator))
    return nullptr;
  if (!graph->obligations.check(graph->binding, diags))
    return nullptr;
  return graph;
}
