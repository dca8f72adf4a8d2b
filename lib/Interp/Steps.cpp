//===- Steps.cpp - what a rank does, one after the other ------------------===//
#include "Steps.h"
#include "Sources.h"
#include "stage/IR/graph/Channel.h"
#include "stage/Transforms/sharding/CheckSizes.h"

using namespace stage;
using namespace stage::interp;

uint64_t stage::interp::getIteration(const Value *value, const Frame &frame) {
  if (const Op *loop = getLoop(value))
    for (auto [number, iteration] : frame)
      if (number == loop->loop)
        return iteration;
  return 0;
}

uint64_t stage::interp::getPlace(const Frame &frame) {
  return !frame.empty() && frame.back().first == placeInFrame ? frame.back().second : 0;
}

namespace {
class StepLister : private UnitWalk {
public:
  explicit StepLister(Graph &graph) : graph(graph) {}

  std::vector<Step> run(const Program &program, const StageProgram &stage, const ChainLifetimes &lifetimes) {
    UnitChains chains = stage.listChains();
    std::vector<ChainUses> uses;
    for (const UnitChain &chain : chains.all)
      uses.emplace_back(chain, lifetimes.get(chain));
    for (const Unit &entry : stage.units) {
      unsigned number = chains.ofUnit[unit];
      const UnitChain &chain = chains.all[number];
      microbatch = entry.microbatch;
      self = llvm::find(program.virtualStages, std::pair(stage.stage, entry.chunk)) - program.virtualStages.begin();
      place = isOncePerStep(entry.kind) ? 0 : self;
      auto found = llvm::find_if(chain, [&](auto *unit) { return unit->kind == entry.kind; });
      walk((*found)->items, &uses[number], found - chain.begin());
      ++unit;
    }
    return std::move(steps);
  }

  std::vector<Step> runUnsharded() {
    // All phases, so that whatever a rank makes can be compared; what the halves of backward add up is added once.
    bool hasHalves = graph.findPhase(PhaseKind::BackwardInput);
    std::vector<PhaseKind> forward = graph.listForwardPhases();
    for (microbatch = 0; microbatch < graph.microbatches; ++microbatch) {
      for (Block &phase : graph.getPhases()) {
        // One device has room for all.
        if (movesCaches(phase.getPhase()) || (isForward(phase.getPhase()) && phase.getPhase() != forward[microbatch]))
          continue;
        addsGradients = phase.getPhase() != PhaseKind::Backward || !hasHalves;
        if (!isOncePerStep(phase.getPhase()))
          walk(listItems(phase));
      }
      ++unit;
    }
    microbatch = 0;
    for (PhaseKind kind : {PhaseKind::Reduce, PhaseKind::Step})
      if (Block *step = graph.findPhase(kind))
        walk(listItems(*step));
    return std::move(steps);
  }

  std::vector<Step> runForward(unsigned number) {
    microbatch = number;
    walk(listItems(*getForward(graph, number)));
    return std::move(steps);
  }

private:
  /// All of a phase, as one device runs it.
  std::vector<ProgramItem> listItems(Block &phase) const {
    std::vector<ProgramItem> items;
    for (auto &op : phase) {
      ProgramItem &item = items.emplace_back();
      item.op = op.get();
      if (op->kind != OpKind::Repeat)
        continue;
      item.kind = ProgramItem::Kind::Loop;
      item.end = getCheckedCount(graph, op->count);
    }
    return items;
  }

  Frame getFrame(const Op *loop, uint64_t iteration) const {
    Frame frame;
    if (loop)
      frame.emplace_back(loop->loop, iteration);
    if (place)
      frame.emplace_back(placeInFrame, place);
    return frame;
  }

  Step &emit(Step::Kind kind, IterationValue value) {
    Step &step = steps.emplace_back();
    step.kind = kind;
    step.value = value.first;
    if (value.first)
      step.frame = getFrame(getLoop(value.first), value.second);
    step.microbatch = microbatch;
    step.unit = unit;
    step.self = self;
    return step;
  }

  void visitOp(const Op &op) override {
    if (op.kind == OpKind::Accumulate && !addsGradients)
      return;
    Step &step = emit(Step::Kind::Run, {});
    step.op = &op;
    step.frame = getFrame(op.getBlock()->getParent(), getIteration().value_or(0));
  }
  // Both sides of a proof have the same tokens, whatever is sampled.
  static bool isOfTokens(const ProgramItem &item) { return item.channel && item.channel->isOfTokens; }

  void visitReceive(const ProgramItem &item, unsigned slot, IterationValue value) override {
    if (isOfTokens(item))
      return;
    Step &step = emit(Step::Kind::Receive, value);
    step.peer = item.peer;
    step.channel = item.channel;
    step.slot = slot;
  }
  void visitSend(const ProgramItem &item, unsigned slot, IterationValue value) override {
    if (isOfTokens(item))
      return;
    Step &step = emit(Step::Kind::Send, value);
    step.peer = item.peer;
    step.channel = item.channel;
    step.slot = slot;
  }
  void bind(IterationValue from, IterationValue to) override {
    Step &step = emit(Step::Kind::Bind, from);
    step.to = to.first;
    step.toFrame = getFrame(getLoop(to.first), to.second);
  }
  void free(IterationValue value) override {
    if (!Sources::isSource(value.first))
      emit(Step::Kind::Free, value);
  }

  Graph &graph;
  unsigned microbatch = 0, unit = 0, self = 0, place = 0;
  bool addsGradients = true;
  std::vector<Step> steps;
};
} // namespace

std::vector<Step> stage::interp::listSteps(const Program &program, const StageProgram &stage,
                                           const ChainLifetimes &lifetimes) {
  return StepLister(*program.graph).run(program, stage, lifetimes);
}

std::vector<Step> stage::interp::listUnshardedSteps(Graph &graph) { return StepLister(graph).runUnsharded(); }

Block *stage::interp::getForward(const Graph &graph, unsigned microbatch) {
  return graph.findPhase(graph.listForwardPhases()[microbatch]);
}

std::vector<Step> stage::interp::listForwardSteps(Graph &graph, unsigned microbatch) {
  return StepLister(graph).runForward(microbatch);
}
