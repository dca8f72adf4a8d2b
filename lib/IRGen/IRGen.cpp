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

std::unique_ptr<Graph> stage::generateGraph(const sema::Program &program, const sema::BoundJob &job, SizeContext &sizes,
                                            const SizeBinding &binding, const Obligations &obligations,
                                            DiagnosticEngine &diags) {
  auto graph = std::make_unique<Graph>(sizes);
  graph->name = job.model->name.name.str();
  graph->loc = job.model->loc();
  graph->binding = binding;
  graph->obligations = obligations;
  graph->microbatches = job.microbatches;
  graph->training = job.isTraining;
  lowerPrecision(*graph, job.precision);
  lowerMesh(*graph, job);
  if (job.optimizer) {
    graph->optimizer.name = job.optimizer->decl->name.name.str();
    graph->optimizer.loc = job.optimizer->decl->loc();
    graph->optimizer.flops = job.optimizer->flops;
    for (const sema::OptimizerState &state : job.optimizer->states)
      graph->optimizer.states.emplace_back(state.name.name.str(),
                                           parseDType(state.dtype).value_or(graph->precision.master));
  }
  sema::Evaluator evaluator(program, sizes, graph->binding, graph->obligations, diags);
  if (!padDims(*graph, job, evaluator))
    return nullptr;
  if (!ModuleLowering(*graph, evaluator, job).lowerModel() || !lowerStrategy(*graph, job, evaluator))
    return nullptr;
  if (!graph->obligations.check(graph->binding, diags))
    return nullptr;
  return graph;
}
