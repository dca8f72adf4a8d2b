//===- CheckStageCount.cpp - whether each virtual stage gets iterations ---===//
#include "stage/Transforms/pipeline/CheckStageCount.h"
#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Symbolic/SizeMessages.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace stage;

/// Of the pipelined repeats together; nothing where one is not there, or has no number.
static std::optional<int64_t> countIterations(const Graph &graph) {
  int64_t iterations = 0;
  for (const Op *repeat : findPipelinedRepeats(graph)) {
    SizeValue count = repeat ? evaluateCount(repeat->count, graph.binding) : SizeValue();
    if (!count || llvm::AddOverflow(iterations, int64_t(count.value.num), iterations))
      return std::nullopt;
  }
  return iterations;
}

bool stage::checkStageCount(const Graph &graph, DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  // Chunks of one stage have a message of their own.
  bool isWhole = !pipeline.axis || graph.mesh[*pipeline.axis].size == 1;
  if (pipeline.repeats.empty() || !pipeline.split.empty() || isWhole)
    return true;
  std::optional<int64_t> iterations = countIterations(graph);
  int64_t parts = countVirtualStages(graph);
  if (!iterations || (*iterations >= parts && (pipeline.balance != Balance::None || *iterations % parts == 0)))
    return true;
  const Axis &axis = graph.mesh[*pipeline.axis];
  std::string repeats = llvm::join(pipeline.repeats, "', '");
  auto blame = [&](DiagnosticBuilder error) {
    // `interleaved(v = 3)`: virtual stages are the schedule's.
    if (pipeline.chunks > 1)
      setOrigin(error, findOrigin(graph.sizes, virtualStagesName));
    setOrigin(error, findOrigin(graph.sizes, axis.name));
    return false;
  };
  if (*iterations < parts) {
    // Fewer virtual stages per stage where the user says how many; else fewer stages, as a schedule may need its own.
    bool isSaid = findOrigin(graph.sizes, virtualStagesName).isValid() && *iterations >= int64_t(axis.size);
    int64_t ofStage = std::max<int64_t>(parts / axis.size, 1);
    std::string most = pipeline.chunks > 1 && isSaid
                           ? "v = " + std::to_string(*iterations / axis.size)
                           : axis.name + " = " + std::to_string(std::max<int64_t>(*iterations / ofStage, 1));
    return blame(diags.report(pipeline.loc, diag::PipelineTooFewLayers).with(parts, repeats, *iterations, most));
  }
  // The first virtual stages get one more, as the last one has the head of the model as well.
  constexpr unsigned mostListed = 32;
  std::string split = "...";
  if (parts <= mostListed)
    split =
        llvm::join(llvm::map_range(splitEvenly(*iterations, parts), [](int64_t n) { return std::to_string(n); }), ", ");
  return blame(diags.report(pipeline.loc, diag::PipelineUneven).with(*iterations, repeats, parts, "[" + split + "]"));
}
