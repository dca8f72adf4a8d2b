//===- PipelineLayout.cpp - how layers are laid over stages ---------------===//
#include "PipelineLayout.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Schedule/Schedule.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Suggestions.h"
#include "stage/Transforms/pipeline/CheckStageCount.h"
#include "llvm/ADT/DenseSet.h"
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

/// `11, 11, 10`: as even as iterations can be divided; of many parts the first ones.
static std::string listEvenSplit(int64_t iterations, int64_t parts) {
  constexpr int64_t mostListed = 64;
  std::string text;
  for (int64_t part = 0; part < std::min(parts, mostListed); ++part)
    text += (text.empty() ? "" : ", ") + std::to_string(iterations / parts + (part < iterations % parts));
  return parts > mostListed ? text + ", ..." : text;
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
      diags.report(pipeline.loc, diag::PipelineSplitCount)
          .with(int64_t(pipeline.split.size()), parts)
          .note(SMLoc(), diag::SplitInstead)
          .with(listEvenSplit(iterations, parts), "one number for each virtual stage");
    else if (negative || sum != iterations)
      diags.report(pipeline.loc, diag::PipelineSplitSum)
          .with(describeRepeats(pipeline), iterations)
          .note(SMLoc(), diag::SplitInstead)
          .with(listEvenSplit(iterations, parts), "since these add up to " + std::to_string(sum));
    else
      return pipeline.split;
    return {};
  }
  if (!checkStageCount(graph, diags))
    return {};
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
  schedule.copies = pipeline.copies;
  schedule.loc = pipeline.loc;
  if (!checkPlacement(schedule, diags))
    return std::nullopt;
  layout.places = invertPlacement(schedule);
  layout.numCopies = pipeline.copies;
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

static bool isBelow(llvm::StringRef path, llvm::StringRef module) {
  return path.consume_front(module) && (path.empty() || path.front() == '.');
}

/// The ops of forward outside of repeats that compute what a name means, or with the parameter that it is.
static void findPlaced(Graph &graph, const PipelineInfo::Placement &placement, PipelineLayout &layout) {
  auto place = [&](const Op &op) {
    if (!isSource(op) && !layout.isPipelined(op))
      layout.placed[&op] = placement.virtualStage;
  };
  auto placeUsers = [&](auto &self, const Value &param) -> void {
    for (auto [user, number] : param.getUses()) {
      if (user->getBlock() != &graph.getForward())
        continue;
      if (isMove(user->kind))
        self(self, *user->getResult(number)); // a form of it
      else
        place(*user);
    }
  };
  for (auto &op : graph.getForward()) {
    bool isMeant = isBelow(op->scope, placement.name);
    for (auto &result : op->getResults())
      isMeant |= isBelow(result->path, placement.name);
    if (isMeant && op->kind == OpKind::Param)
      placeUsers(placeUsers, *op->getResult());
    else if (isMeant)
      place(*op);
  }
}

/// What is placed, and where the chain begins and ends because of that: behind all that is placed and that it needs,
/// and before all that is placed and needs it. False after an error.
static bool placeOps(Graph &graph, PipelineLayout &layout, unsigned &entry, unsigned &exit, DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  if (layout.getNumVirtual() == 1 || pipeline.placements.empty())
    return true;
  bool isGood = true;
  auto fail = [&](auto message, const PipelineInfo::Placement &placement, const auto &...arguments) {
    diags.report(placement.loc, message).with(placement.name, arguments...);
    return isGood = false;
  };
  llvm::SmallVector<Op *, 2> repeats = layout.listInOrder(PhaseKind::Forward);
  llvm::DenseMap<Op *, Op *> neededBy = findFirstUsers(repeats);
  llvm::DenseSet<const Op *> behind(repeats.begin(), repeats.end()); // with what depends on them
  for (auto &op : graph.getForward())
    forEachOutsideValue(*op, [&](Value *value, Op &) {
      if (value->getOp() && behind.contains(getTopLevelOp(value->getOp())))
        behind.insert(op.get());
    });
  for (const PipelineInfo::Placement &placement : pipeline.placements) {
    size_t before = layout.placed.size();
    if (placement.virtualStage >= layout.getNumVirtual()) {
      fail(diag::PlaceOutOfRange, placement, placement.virtualStage, layout.getLast());
      continue;
    }
    findPlaced(graph, placement, layout);
    if (layout.placed.size() == before)
      fail(diag::PlaceOfNothing, placement);
  }
  std::optional<unsigned> first, last; // with iterations
  for (unsigned v = 0; v < layout.getNumVirtual(); ++v)
    for (Op *repeat : repeats)
      if (auto [begin, end] = layout.getRange(*repeat, v); begin < end) {
        first = first.value_or(v);
        last = v;
      }
  for (auto &op : graph.getForward()) {
    auto stage = layout.placed.find(op.get());
    if (stage == layout.placed.end())
      continue;
    auto meant =
        llvm::find_if(pipeline.placements, [&](auto &placement) { return placement.virtualStage == stage->second; });
    if (neededBy.lookup(op.get()) == repeats.front()) {
      entry = std::max(entry, stage->second);
      if (first && entry > *first)
        return fail(diag::PlaceBehindUse, *meant, stage->second, "needed by iterations", *first);
    } else if (behind.contains(op.get()) && !neededBy.lookup(op.get())) {
      exit = std::min(exit, stage->second);
      if (last && exit < *last)
        return fail(diag::PlaceBehindUse, *meant, stage->second, "made of iterations", *last);
    }
  }
  return isGood;
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
  unsigned entry = 0, exit = layout->getLast();
  if (!placeOps(graph, *layout, entry, exit, diags))
    return std::nullopt;
  layout->chain = PipelineChain(counts, split, entry, exit);
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
  layout->numChunks = layout->numCopies = 1;
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
      ofStage[places[v].second] = v % getNumVirtual();
  return ofStage;
}

llvm::SmallVector<unsigned, 2> PipelineLayout::getStages(unsigned virtualStage) const {
  llvm::SmallVector<unsigned, 2> stages;
  for (unsigned copy = 0; copy < numCopies; ++copy)
    stages.push_back(places[getNumber(copy, virtualStage)].first);
  llvm::sort(stages);
  return stages;
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
  if (!hasMessages(kind) || all.empty())
    return nullptr;
  std::optional<unsigned> repeat = chain.getCutRepeat(std::min(virtualStage, neighbour));
  return repeat ? all[*repeat] : nullptr;
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
    if (isBuffer ? visited.insert(layout.buffers.getFirst(value)).second
                 : isOncePerStep(producer->getBlock()->getPhase()))
      stages |= getGradientStages(layout, *value);
  });
  return stages;
}
