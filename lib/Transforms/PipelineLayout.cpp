//===- PipelineLayout.cpp - how layers are laid over stages ---------------===//
#include "PipelineLayout.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace stage;

static Op *findLoop(Block &block, llvm::function_ref<bool(const Op &)> isLoop) {
  for (auto &op : block)
    if (op->kind == OpKind::Repeat && isLoop(*op))
      return op.get();
  return nullptr;
}

/// Iterations per virtual stage; empty after an error.
static std::vector<int64_t> splitIterations(Graph &graph, const PipelineLayout &layout, int64_t iterations,
                                            DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  int64_t parts = layout.getNumVirtual();
  if (!pipeline.split.empty()) {
    int64_t sum = 0;
    bool negative = false;
    for (int64_t part : pipeline.split) {
      negative |= part < 0;
      if (part > iterations || llvm::AddOverflow(sum, part, sum))
        sum = std::numeric_limits<int64_t>::max();
    }
    if (int64_t(pipeline.split.size()) != parts)
      diags.report(pipeline.loc, diag::PipelineSplitCount) << int64_t(pipeline.split.size()) << parts;
    else if (negative || sum != iterations)
      diags.report(pipeline.loc, diag::PipelineSplitSum) << pipeline.loop << iterations;
    else
      return pipeline.split;
    return {};
  }
  if (iterations < parts) {
    diags.report(pipeline.loc, diag::PipelineTooFewLayers) << parts << pipeline.loop << iterations;
    return {};
  }
  if (iterations % parts) {
    diags.report(pipeline.loc, diag::PipelineUneven) << iterations << pipeline.loop << parts;
    return {};
  }
  return std::vector<int64_t>(parts, iterations / parts);
}

std::optional<PipelineLayout> stage::computePipelineLayout(Graph &graph, DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  PipelineLayout layout;
  layout.buffers = GradientBuffers(graph);
  if (pipeline.loop.empty()) {
    layout.ranges.emplace_back(0, 0);
    return layout;
  }
  layout.numStages = pipeline.axis ? graph.mesh[*pipeline.axis].size : 1;
  layout.numChunks = pipeline.chunks;
  const Op *forward = findLoop(graph.getForward(), [&](const Op &op) { return op.name == pipeline.loop; });
  if (!forward) {
    diags.report(pipeline.loc, diag::PipelineUnknownLoop) << pipeline.loop;
    return std::nullopt;
  }
  if (layout.numChunks > 1 && layout.numStages == 1) {
    diags.report(pipeline.loc, diag::PipelineOneStage) << int64_t(layout.numChunks);
    return std::nullopt;
  }
  for (Block &phase : graph.getPhases())
    layout.loops[unsigned(phase.getPhase())] =
        findLoop(phase, [&](const Op &op) { return op.loop == forward->loop; });

  SizeValue count = evaluateCount(forward->count, graph.binding);
  if (!count) {
    diags.report(forward->loc, diag::RepeatCountUnknown) << forward->name << forward->count.str();
    return std::nullopt;
  }
  std::vector<int64_t> split = splitIterations(graph, layout, int64_t(count.value.num), diags);
  if (split.empty())
    return std::nullopt;
  int64_t begin = 0;
  for (int64_t part : split) {
    layout.ranges.emplace_back(begin, begin + part);
    begin += part;
  }
  return layout;
}

llvm::BitVector PipelineLayout::getStagesOfLoop(const Op &inner) const {
  llvm::BitVector stages(getNumVirtual());
  const Op *loop = inner.getBlock()->getParent();
  for (unsigned v = 0; v < stages.size(); ++v) {
    auto [begin, end] = ranges[v];
    // What enters the repeat is used wherever that runs.
    if (loop ? loop->cases.count(inner.getBlock()->getNumber(), begin, end) > 0 : begin < end)
      stages.set(v);
  }
  return stages;
}

bool stage::isSource(const Op &op) {
  return isState(op.kind) || op.kind == OpKind::Input || op.kind == OpKind::Constant;
}

llvm::BitVector stage::getGradientStages(const PipelineLayout &layout, const Value &gradient) {
  if (gradient.getOp()->kind != OpKind::Accumulate)
    return getStepStages(layout, *gradient.getOp());
  llvm::BitVector stages(layout.getNumVirtual());
  for (Op *accumulation : layout.buffers.getAccumulations(&gradient)) {
    Op *top = getTopLevelOp(accumulation);
    if (top->virtualStage)
      stages.set(*top->virtualStage);
    else if (layout.isPipelined(*top))
      stages |= layout.getStagesOfLoop(*accumulation); // each accumulates in its own iterations
  }
  return stages;
}

llvm::BitVector stage::getStepStages(const PipelineLayout &layout, Op &op) {
  llvm::BitVector stages(layout.getNumVirtual());
  llvm::SmallPtrSet<const Op *, 4> visited; // buffers, which may have many names
  forEachOutsideValue(op, [&](Value *value, Op &) {
    Op *producer = value->getOp();
    if (!producer)
      return;
    bool isBuffer = producer->kind == OpKind::Accumulate;
    if (isBuffer ? visited.insert(layout.buffers.getFirst(value)).second : producer->getBlock() == op.getBlock())
      stages |= getGradientStages(layout, *value);
  });
  return stages;
}
