//===- KnownGraphs.cpp - graphs that schedules have in common -------------===//
#include "stage/Compiler/KnownGraphs.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

constexpr size_t mostGraphs = 8;
/// The first pass that asks for more than which kinds of units a schedule has.
constexpr llvm::StringLiteral firstPassOfStages = "partition-pipeline";

/// A copy of a graph that the passes have run on, with what else a plan has.
static std::unique_ptr<Graph> copyFor(Graph &plan, std::shared_ptr<const Graph> known) {
  auto graph = std::make_unique<Graph>(plan.sizes);
  graph->name = plan.name;
  graph->loc = plan.loc;
  graph->mesh = std::move(plan.mesh);
  graph->binding = std::move(plan.binding);
  graph->unpadded = std::move(plan.unpadded);
  graph->obligations = plan.obligations;
  for (const Obligations::Obligation &owed : known->obligations.all())
    graph->obligations.add(owed.kind, owed.left, owed.right, owed.loc, owed.reason);
  graph->rules = std::move(plan.rules);
  graph->precision = plan.precision;
  graph->optimizer = std::move(plan.optimizer);
  graph->pipeline = std::move(plan.pipeline);
  graph->prefetch = known->prefetch;
  graph->microbatches = plan.microbatches;
  graph->clip = plan.clip;
  graph->training = plan.training;
  graph->copyModel(std::move(known));
  return graph;
}

static std::string listPasses() {
  std::string names;
  for (const PassInfo &pass : getAllPasses()) {
    if (pass.name == firstPassOfStages)
      break;
    names += (names.empty() ? "" : ",") + pass.name.str();
  }
  return names;
}

bool KnownGraphs::run(std::unique_ptr<Graph> &graph, DiagnosticEngine &diags) {
  if (!GraphInput::isComplete(*graph))
    return true;
  GraphInput input(*graph);
  auto found = llvm::find_if(all, [&](const Known &known) { return known.input == input; });
  if (found != all.end()) {
    ++numShared;
    graph = copyFor(*graph, found->graph);
    return true;
  }
  PassManager manager(getAllPasses(), diags, PassOptions(), llvm::errs());
  static const std::string names = listPasses();
  llvm::SmallVector<llvm::StringRef, 16> left;
  llvm::SplitString(names, left, ",");
  llvm::erase_if(left, [&](llvm::StringRef name) { return graph->hasRun(name); });
  manager.addPipeline(llvm::join(left, ","));
  unsigned messagesBefore = diags.getNumMessages();
  PipelineInfo whole = std::exchange(graph->pipeline, input.getPipeline());
  bool good = manager.run(*graph);
  graph->pipeline = std::move(whole);
  if (!good || diags.getNumMessages() != messagesBefore || !GraphInput::isComplete(*graph))
    return good;
  if (all.size() == mostGraphs)
    all.pop_front();
  std::shared_ptr<Graph> kept = std::move(graph);
  graph = copyFor(*kept, kept);
  all.push_back({std::move(input), std::move(kept)});
  return true;
}
