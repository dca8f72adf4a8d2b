//===- BalanceStages.cpp - what `split = balanced(...)` makes equal --------===//
//
// Problem: which iterations each virtual stage of a pipeline runs, where iterations differ,
// or where the first and the last virtual stage have more to do than those:
//
//   split = balanced(flops)       FLOPs of contractions and attention of a microbatch, forward and backward
//   split = balanced(memory)      bytes of parameters, their gradients and optimizer states,
//                                 and of what forward keeps for backward times the microbatches in
//                                 flight on the virtual stage
//
// Algorithm: the load of one iteration of each case of each repeat, and of what stands
// before, between and behind the repeats; what stands between two runs with the last iteration
// before it. The schedule says how many microbatches are in flight. Schedule/BalancedSplit.h
// finds the split.
//
// Limits: a virtual stage is balanced by itself, whatever other chunks its stage has. Temporaries,
// buffers and messages are not counted, nor what backward makes again; gradients of a
// parameter from outside of the repeats that iterations use count where it stands outside.
//
//===----------------------------------------------------------------------===//
#include "PipelineLayout.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/SavedBytes.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/pipeline/CheckStageCount.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
class LoadCollector {
public:
  LoadCollector(Graph &graph, const PipelineLayout &places)
      : graph(graph), places(places), binding(graph.binding), byMemory(graph.pipeline.balance == Balance::Memory) {
    if (byMemory)
      for (const SavedBytes &saved : collectSavedBytes(graph))
        if (saved.space == MemorySpace::Device)
          for (const SavedValue &kept : saved.values)
            addSaved(*kept.value);
  }

  ChainLoad run() {
    outside.resize(places.getNumVirtual());
    for (Block &phase : graph.getPhases())
      if (counts(phase.getPhase()))
        for (auto &op : phase)
          addOutside(*op);
    ChainLoad chain;
    chain.before = outside.front();
    const std::vector<Op *> &repeats = places.repeats[unsigned(PhaseKind::Forward)];
    for (unsigned number = 0; number < repeats.size(); ++number) {
      addRuns(number, *repeats[number], chain);
      if (number + 1 < repeats.size())
        addToLast(outside[number + 1], chain);
    }
    chain.behind = outside.back();
    // Without anything to tell iterations apart by, all are alike.
    if (llvm::all_of(chain.runs, [](const ChainLoad::Run &run) { return run.load == StageLoad(); }))
      for (ChainLoad::Run &run : chain.runs)
        run.load.once = 1;
    return chain;
  }

  bool hasFailed = false; ///< A load is more than can be counted.

private:
  /// Of the two ways in which backward may run one counts.
  bool counts(PhaseKind kind) const {
    bool isHalf = kind == PhaseKind::BackwardInput || kind == PhaseKind::BackwardWeight;
    return byMemory || (!isOncePerStep(kind) && !(isHalf && graph.findPhase(PhaseKind::Backward)));
  }

  void addRuns(unsigned number, const Op &repeat, ChainLoad &chain) {
    int64_t count = places.chain.getCount(number);
    std::vector<IterationCases::Run> runs = repeat.cases.getRuns();
    if (runs.empty())
      runs.push_back({0, 0, count});
    llvm::DenseMap<unsigned, StageLoad> ofCase;
    for (const IterationCases::Run &run : runs) {
      if (run.begin == run.end)
        continue;
      auto [load, isNew] = ofCase.try_emplace(run.number);
      if (isNew)
        load->second = getLoadOfIteration(number, run.begin);
      if (!chain.runs.empty() && chain.runs.back().load == load->second)
        chain.runs.back().count += run.end - run.begin;
      else
        chain.runs.push_back({run.end - run.begin, load->second});
    }
  }

  /// What stands behind a repeat runs with its last iteration; before any iteration, with what is before the chain.
  static void addToLast(const StageLoad &load, ChainLoad &chain) {
    if (load == StageLoad())
      return;
    StageLoad *last = &chain.before;
    if (!chain.runs.empty()) {
      ChainLoad::Run &run = chain.runs.back();
      if (run.count > 1) {
        --run.count;
        chain.runs.push_back({1, run.load});
      }
      last = &chain.runs.back().load;
    }
    last->once += load.once;
    last->perMicrobatch += load.perMicrobatch;
  }

  StageLoad getLoadOfIteration(unsigned number, int64_t iteration) {
    StageLoad load;
    llvm::DenseSet<const Op *> buffers;
    for (Block &phase : graph.getPhases()) {
      const std::vector<Op *> &repeats = places.repeats[unsigned(phase.getPhase())];
      Op *repeat = repeats.empty() ? nullptr : repeats[number];
      if (!repeat || !counts(phase.getPhase()))
        continue;
      Block &body = repeat->getBody(iteration);
      for (auto &op : body)
        load.once += byMemory ? getStateBytes(*op, buffers) : getFlops(*op);
      load.perMicrobatch += savedBytes.lookup(&body);
    }
    return load;
  }

  void addOutside(Op &op) {
    if (places.isPipelined(op))
      return;
    if (byMemory) {
      llvm::BitVector stages(places.getNumVirtual());
      if (op.kind == OpKind::Param)
        addUseStages(places, *op.getResult(), stages);
      else if (isOncePerStep(op.getBlock()->getPhase()))
        stages = getStepStages(places, op);
      else if (op.virtualStage)
        stages.set(*op.virtualStage);
      llvm::DenseSet<const Op *> none;
      for (unsigned place : stages.set_bits()) {
        llvm::DenseSet<const Op *> &buffers = isAddition(op.kind) || !op.bodies.empty() ? buffersOf[place] : none;
        outside[place].once += addUp(op, [&](const Op &one) { return getStateBytes(one, buffers); });
      }
    } else if (op.virtualStage) {
      outside[*op.virtualStage].once += addUp(op, [&](const Op &one) { return getFlops(one); });
    }
  }

  /// Of an op and of all that it repeats.
  __int128 addUp(const Op &op, llvm::function_ref<__int128(const Op &)> getLoad) {
    __int128 load = getLoad(op);
    for (auto &body : op.bodies) {
      int64_t count = getCheckedCount(graph, op.count);
      for (auto &inner : *body)
        load += (op.bodies.size() > 1 ? op.cases.count(body->getNumber(), 0, count) : count) * getLoad(*inner);
    }
    return load;
  }

  /// Bytes that a rank holds throughout: a parameter, a gradient buffer that is not known yet, the states of an update.
  __int128 getStateBytes(const Op &op, llvm::DenseSet<const Op *> &buffers) const {
    if (op.kind == OpKind::Update) {
      const Value *param = op.getOperand(0), *gradient = op.getOperand(1);
      if (param->type.space != MemorySpace::Device)
        return 0;
      __int128 bytes = 0;
      for (auto &[name, type] : graph.optimizer.getStates(param->type)) {
        TensorType state = gradient->type;
        state.dtype = type;
        bytes += getCheckedBytes(graph, state, gradient->sharding);
      }
      return bytes;
    }
    bool isHeld = op.kind == OpKind::Param ||
                  (isAddition(op.kind) && buffers.insert(places.buffers.getFirst(op.getResult())).second);
    const Value *held = isHeld ? op.getResult() : nullptr;
    return held && held->type.space == MemorySpace::Device ? getCheckedBytes(graph, held->type, held->sharding) : 0;
  }

  /// What forward keeps of one iteration, or outside of the repeats of the chain.
  void addSaved(const Value &value) {
    __int128 bytes = getCheckedBytes(graph, value.type, value.sharding);
    const Op *loop = value.getBlock()->getParent();
    if (loop && places.isPipelined(*loop)) {
      savedBytes[value.getBlock()] += bytes;
      return;
    }
    const Op *top = loop ? loop : value.getOp();
    outside.resize(places.getNumVirtual());
    std::optional<unsigned> place = top->virtualStage;
    if (places.isPipelined(*top))
      place = places.getExit(*top);
    if (place)
      outside[*place].perMicrobatch += bytes * (loop ? getCheckedCount(graph, loop->count) : 1);
  }

  /// Model FLOPs of an op on all ranks of a stage.
  __int128 getFlops(const Op &op) {
    if (op.kind != OpKind::Compute)
      return 0;
    OpCost cost = getLocalCost(graph, op);
    return sum(cost.flops.contraction) + sum(cost.flops.attention);
  }

  __int128 sum(Size size) {
    auto [known, isNew] = sums.try_emplace(size, 0);
    if (!isNew)
      return known->second;
    std::optional<Rational> total = sumOverRanks(graph, size, binding);
    hasFailed |= !total || total->num / total->den > maxLoad;
    return sums[size] = hasFailed ? __int128(0) : total->num / total->den;
  }

  static constexpr __int128 maxLoad = __int128(1) << 100; // sums of a million such loads can be counted
  Graph &graph;
  const PipelineLayout &places;
  SizeBinding binding;
  bool byMemory;
  std::vector<StageLoad> outside;                                 ///< By place in the chain.
  llvm::DenseMap<unsigned, llvm::DenseSet<const Op *>> buffersOf; ///< By place, gradient buffers that are counted.
  llvm::DenseMap<const Block *, __int128> savedBytes;             ///< By body of a repeat of the chain.
  llvm::DenseMap<Size, __int128> sums;
};
} // namespace

/// By virtual stage, the most microbatches between their first and their last unit there; of copies of one the most of
/// any. Where FLOPs are balanced no load is that of a microbatch in flight, and 1 stands for any number.
static std::vector<int64_t> countMostInFlight(const Graph &graph) {
  const PipelineInfo &pipeline = graph.pipeline;
  unsigned numStages = pipeline.axis ? graph.mesh[*pipeline.axis].size : 1;
  std::vector<int64_t> inFlight(countVirtualStages(graph), 1);
  if (pipeline.balance != Balance::Memory)
    return inFlight;
  for (unsigned stage = 0; stage < pipeline.units.size(); ++stage) {
    llvm::DenseMap<std::pair<unsigned, unsigned>, size_t> last;
    const std::vector<Unit> &units = pipeline.units[stage];
    for (size_t i = 0; i < units.size(); ++i)
      last[{units[i].chunk, units[i].microbatch}] = i;
    std::vector<int64_t> now(pipeline.chunks, 0);
    for (size_t i = 0; i < units.size(); ++i) {
      unsigned chunk = units[i].chunk, v = chunk * numStages + stage;
      if (units[i].kind == PhaseKind::Forward)
        ++now[chunk];
      int64_t &most = inFlight[(pipeline.placement.empty() ? v : pipeline.placement[v]) % inFlight.size()];
      most = std::max(most, now[chunk]);
      if (last.lookup({chunk, units[i].microbatch}) == i)
        --now[chunk];
    }
  }
  return inFlight;
}

std::optional<std::vector<int64_t>> stage::balanceStages(Graph &graph, const PipelineLayout &places,
                                                         DiagnosticEngine &diags) {
  const PipelineInfo &pipeline = graph.pipeline;
  if (!checkStageCount(graph, diags) || !checkSizes(graph, diags))
    return std::nullopt;
  LoadCollector collector(graph, places);
  ChainLoad chain = collector.run();
  std::vector<int64_t> inFlight = countMostInFlight(graph);
  auto split = collector.hasFailed ? std::nullopt : splitBalanced(chain, inFlight);
  if (!split) {
    diags.report(pipeline.loc, diag::PipelineLoads) << getName(pipeline.balance);
    return std::nullopt;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(*split, os);
  diags.report(pipeline.loc, diag::PipelineBalanced) << getName(pipeline.balance) << "[" + os.str() + "]";
  return split;
}
