//===- PipelineLayout.cpp - how layers are laid over stages ---------------===//
#include "PipelineLayout.h"
#include "stage/Schedule/Schedule.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace stage;

/// "dense', 'experts", for between quotes.
static std::string describeRepeats(const PipelineInfo &pipeline) { return llvm::join(pipeline.repeats, "', '"); }

/// The repeats of forward by their names, each of which uses what the one before it makes; empty after an error.
static std::vector<Op *> findRepeats(Graph &graph, DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  std::vector<Op *> repeats = findPipelinedRepeats(graph);
  for (unsigned i = 0; i < repeats.size(); ++i)
    if (!repeats[i]) {
      diags.report(pipeline.loc, diag::PipelineUnknownLoop) << pipeline.repeats[i];
      return {};
    }
  llvm::DenseMap<Op *, Op *> neededBy = findFirstUsers(repeats);
  for (unsigned i = 1; i < repeats.size(); ++i)
    if (neededBy.lookup(repeats[i - 1]) != repeats[i]) {
      diags.report(pipeline.loc, diag::PipelineNotInRow) << pipeline.repeats[i] << pipeline.repeats[i - 1];
      return {};
    }
  return repeats;
}

/// Iterations per virtual stage; empty after an error.
static std::vector<int64_t> splitIterations(const Graph &graph, const PipelineLayout &layout, int64_t iterations,
                                            DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  int64_t parts = layout.getNumVirtual();
  if (pipeline.balance != Balance::None) {
    diags.report(pipeline.loc, diag::PipelineNotBalanced) << getName(pipeline.balance);
    return {};
  }
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
      diags.report(pipeline.loc, diag::PipelineSplitSum) << describeRepeats(pipeline) << iterations;
    else
      return pipeline.split;
    return {};
  }
  if (iterations < parts) {
    diags.report(pipeline.loc, diag::PipelineTooFewLayers) << parts << describeRepeats(pipeline) << iterations;
    return {};
  }
  if (iterations % parts) {
    diags.report(pipeline.loc, diag::PipelineUneven) << iterations << describeRepeats(pipeline) << parts;
    return {};
  }
  return splitEvenly(iterations, parts);
}

/// All but where the chain is cut, and the iterations of each of its repeats.
static std::optional<PipelineLayout> listRepeats(Graph &graph, std::vector<int64_t> &counts, DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  PipelineLayout layout;
  layout.buffers = GradientBuffers(graph);
  if (pipeline.repeats.empty())
    return layout;
  layout.numStages = pipeline.axis ? graph.mesh[*pipeline.axis].size : 1;
  layout.numChunks = pipeline.chunks;
  std::vector<Op *> forward = findRepeats(graph, diags);
  if (forward.empty())
    return std::nullopt;
  if (layout.numChunks > 1 && layout.numStages == 1) {
    diags.report(pipeline.loc, diag::PipelineOneStage) << int64_t(layout.numChunks);
    return std::nullopt;
  }
  Schedule schedule;
  schedule.stages = layout.numStages;
  schedule.chunks = layout.numChunks;
  schedule.placement = pipeline.placement;
  schedule.loc = pipeline.loc;
  if (!checkPlacement(schedule, diags))
    return std::nullopt;
  layout.places = invertPlacement(schedule);
  llvm::DenseMap<unsigned, unsigned> numbers; // by loop
  int64_t iterations = 0;
  for (const Op *repeat : forward) {
    SizeValue count = evaluateCount(repeat->count, graph.binding);
    if (!count || llvm::AddOverflow(iterations, int64_t(count.value.num), iterations)) {
      diags.report(repeat->loc, diag::RepeatCountUnknown) << repeat->name << repeat->count.str();
      return std::nullopt;
    }
    numbers[repeat->loop] = counts.size();
    counts.push_back(int64_t(count.value.num));
  }
  for (Block &phase : graph.getPhases()) {
    std::vector<Op *> &repeats = layout.repeats[unsigned(phase.getPhase())];
    repeats.resize(forward.size());
    for (auto &op : phase)
      if (auto number = numbers.find(op->loop); op->kind == OpKind::Repeat && number != numbers.end()) {
        repeats[number->second] = op.get();
        layout.numbers[op.get()] = number->second;
      }
  }
  return layout;
}

std::optional<PipelineLayout> stage::computePipelineLayout(Graph &graph, DiagnosticEngine &diags) {
  std::vector<int64_t> counts;
  std::optional<PipelineLayout> layout = listRepeats(graph, counts, diags);
  if (!layout || counts.empty())
    return layout;
  int64_t iterations = std::accumulate(counts.begin(), counts.end(), int64_t(0));
  std::vector<int64_t> split = splitIterations(graph, *layout, iterations, diags);
  if (split.empty())
    return std::nullopt;
  layout->chain = PipelineChain(counts, split);
  return layout;
}

std::optional<PipelineLayout> stage::computePlaces(Graph &graph, DiagnosticEngine &diags) {
  std::vector<int64_t> counts;
  std::optional<PipelineLayout> layout = listRepeats(graph, counts, diags);
  if (!layout || counts.empty())
    return std::nullopt;
  std::vector<int64_t> split = {0};
  llvm::append_range(split, counts);
  layout->chain = PipelineChain(counts, split);
  layout->numStages = split.size();
  layout->numChunks = 1;
  layout->places.clear();
  for (unsigned place = 0; place < split.size(); ++place)
    layout->places.emplace_back(place, 0);
  return layout;
}

void stage::addUseStages(const PipelineLayout &layout, const Value &value, llvm::BitVector &stages) {
  for (auto [user, number] : value.getUses()) {
    const Op *top = getTopLevelOp(user);
    if (user->kind == OpKind::Update)
      continue;
    if (top->virtualStage)
      stages.set(*top->virtualStage);
    else if (layout.isPipelined(*top))
      stages |= layout.getStagesOfLoop(*user);
    else if (isMove(user->kind))
      addUseStages(layout, *user->getResult(number), stages); // each stage makes it for itself
  }
}

llvm::DenseMap<Op *, Op *> stage::findFirstUsers(llvm::ArrayRef<Op *> repeats) {
  llvm::DenseMap<Op *, Op *> users;
  llvm::SmallVector<Op *, 16> worklist;
  for (Op *repeat : repeats)
    for (worklist.push_back(repeat); !worklist.empty();)
      forEachOutsideValue(*worklist.pop_back_val(), [&](Value *value, Op &) {
        Op *producer = value->getOp();
        if (producer && producer->getBlock() == repeat->getBlock() && users.try_emplace(producer, repeat).second)
          worklist.push_back(producer);
      });
  return users;
}

llvm::SmallVector<unsigned, 4> PipelineLayout::listVirtualStages(unsigned stage) const {
  llvm::SmallVector<unsigned, 4> ofStage(numChunks);
  for (unsigned v = 0; v < places.size(); ++v)
    if (places[v].first == stage)
      ofStage[places[v].second] = v;
  return ofStage;
}

llvm::BitVector PipelineLayout::getStagesOfLoop(const Op &inner) const {
  llvm::BitVector stages(getNumVirtual());
  const Op *loop = inner.getBlock()->getParent();
  for (unsigned v = 0; v < stages.size(); ++v) {
    auto [begin, end] = getRange(loop ? *loop : inner, v);
    // What enters the repeat is used wherever that runs.
    if (loop ? loop->cases.count(inner.getBlock()->getNumber(), begin, end) > 0 : begin < end)
      stages.set(v);
  }
  return stages;
}

llvm::SmallVector<Op *, 2> PipelineLayout::listInOrder(PhaseKind kind) const {
  llvm::SmallVector<Op *, 2> order;
  for (Op *repeat : repeats[unsigned(kind)])
    if (repeat)
      order.push_back(repeat);
  if (isBackward(kind))
    std::reverse(order.begin(), order.end());
  return order;
}

unsigned PipelineLayout::getEntry(const Op &repeat) const {
  unsigned number = numbers.lookup(&repeat);
  return isBackward(repeat.getBlock()->getPhase()) ? chain.getLast(number) : chain.getFirst(number);
}

unsigned PipelineLayout::getExit(const Op &repeat) const {
  unsigned number = numbers.lookup(&repeat);
  return isBackward(repeat.getBlock()->getPhase()) ? chain.getFirst(number) : chain.getLast(number);
}

Op *PipelineLayout::getCarrier(PhaseKind kind, unsigned virtualStage, unsigned neighbour) const {
  const std::vector<Op *> &all = repeats[unsigned(kind)];
  return hasMessages(kind) && !all.empty() ? all[chain.getCutRepeat(std::min(virtualStage, neighbour))] : nullptr;
}

bool stage::isSource(const Op &op) {
  return isState(op.kind) || op.kind == OpKind::Input || op.kind == OpKind::Constant;
}

llvm::BitVector stage::getGradientStages(const PipelineLayout &layout, const Value &gradient) {
  if (!isAddition(gradient.getOp()->kind))
    return getStepStages(layout, *gradient.getOp());
  llvm::BitVector stages(layout.getNumVirtual());
  for (Op *accumulation : layout.buffers.getAccumulations(&gradient)) {
    Op *top = getTopLevelOp(accumulation);
    if (top->virtualStage)
      stages.set(*top->virtualStage);
    else if (layout.isPipelined(*top))
      stages |= layout.getStagesOfLoop(*accumulation); // each accumulates in its own iterations
    else if (isOncePerStep(top->getBlock()->getPhase()))
      stages |= getStepStages(layout, *top); // of what several stages share, each adds its share
  }
  return stages;
}

llvm::BitVector stage::getStepStages(const PipelineLayout &layout, Op &op) {
  llvm::BitVector stages(layout.getNumVirtual());
  llvm::SmallPtrSet<const Op *, 4> visited; // buffers, which may have many names
  forEachOutsideValue(op, [&](Value *value, Op &user) {
    Op *producer = value->getOp();
    if (!producer || (user.clips && value == user.getOperands().back())) // the norm is on all stages
      return;
    bool isBuffer = isAddition(producer->kind);
    if (isBuffer ? visited.insert(layout.buffers.getFirst(value)).second : isOncePerStep(producer->getBlock()->getPhase()))
      stages |= getGradientStages(layout, *value);
  });
  return stages;
}
