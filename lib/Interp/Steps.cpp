//===- Steps.cpp - what a rank does, one after the other ------------------===//
#include "Steps.h"
#include "Sources.h"
#include "stage/Transforms/CheckSizes.h"

using namespace stage;

uint64_t stage::getIteration(const Value *value, const Frame &frame) {
  if (const Op *loop = getLoop(value))
    for (auto [number, iteration] : frame)
      if (number == loop->loop)
        return iteration;
  return 0;
}

namespace {
class StepLister {
public:
  /// Without lifetimes nothing is freed.
  StepLister(Graph &graph, const Program *program, const Lifetimes *lifetimes)
      : graph(graph), program(program), lifetimes(lifetimes) {}

  std::vector<Step> run(const StageProgram &stage) {
    std::vector<llvm::SmallVector<const UnitTemplate *, 4>> chains; // one per chunk, then the step
    for (unsigned chunk = 0; chunk < program->numChunks; ++chunk)
      chains.push_back(stage.getChain(chunk));
    if (const UnitTemplate *step = stage.find(PhaseKind::Step, 0))
      chains.push_back({step});
    std::vector<ChainUses> usesOf;
    for (auto &chain : chains)
      usesOf.emplace_back(*program, chain);
    for (const Unit &entry : stage.units) {
      unsigned number = entry.kind == PhaseKind::Step ? chains.size() - 1 : entry.chunk;
      microbatch = entry.microbatch;
      self = findVirtualStage(stage.stage, entry.chunk);
      uses = &usesOf[number];
      place = llvm::find_if(chains[number], [&](auto *unit) { return unit->kind == entry.kind; }) - chains[number].begin();
      runItems(chains[number][place]->items);
      ++unit;
    }
    return std::move(steps);
  }

  std::vector<Step> runUnsharded() {
    for (microbatch = 0; microbatch < graph.microbatches; ++microbatch) {
      for (Block &phase : graph.getPhases())
        if (phase.getPhase() != PhaseKind::Step)
          runBlock(phase);
      ++unit;
    }
    microbatch = 0;
    if (Block *step = graph.findPhase(PhaseKind::Step))
      runBlock(*step);
    return std::move(steps);
  }

  std::vector<Step> runForward(unsigned number) {
    microbatch = number;
    runBlock(graph.getForward());
    return std::move(steps);
  }

private:
  Step &emit(Step::Kind kind) {
    Step &step = steps.emplace_back();
    step.kind = kind;
    step.frame = frame;
    step.microbatch = microbatch;
    step.unit = unit;
    step.self = self;
    return step;
  }

  unsigned findVirtualStage(unsigned stage, unsigned chunk) const {
    auto found = llvm::find(program->virtualStages, std::pair(stage, chunk));
    assert(found != program->virtualStages.end() && "units are of virtual stages");
    return found - program->virtualStages.begin();
  }

  //===--- frees ----------------------------------------------------------===//

  void free(const Value *value) {
    if (lifetimes && !Sources::isSource(value))
      emit(Step::Kind::Free).value = value;
  }
  void freeAll(llvm::ArrayRef<const Value *> values) {
    for (const Value *value : values)
      free(value);
  }
  bool outlivesUnit(const Value *value) const {
    return getLoop(value) ? lifetimes->isKept(value) : uses->isUsedAfter(value, place);
  }
  bool isWanted(const Value *value) const {
    if (!lifetimes)
      return true;
    if (getLoop(value))
      return !lifetimes->isUnused(value) || lifetimes->isKept(value);
    return (*uses)[place].count(value) || outlivesUnit(value);
  }

  //===--- ops ------------------------------------------------------------===//

  void runBlock(Block &block) {
    for (auto &op : block)
      runOp(*op);
  }

  void runOp(Op &op) {
    if (op.kind == OpKind::Repeat) {
      runLoop(op, 0, getCheckedCount(graph, op.count));
    } else if (op.kind != OpKind::Yield) {
      emit(Step::Kind::Run).op = &op;
    }
    if (lifetimes)
      freeAll(lifetimes->getReleases(&op));
  }

  void setIteration(const Op &loop, uint64_t iteration) {
    for (auto &entry : frame)
      if (entry.first == loop.loop) {
        entry.second = iteration;
        return;
      }
    frame.emplace_back(loop.loop, iteration);
  }

  void bind(const Value *from, const Frame &fromFrame, const Value *to, const Frame &toFrame) {
    Step &step = emit(Step::Kind::Bind);
    step.value = from;
    step.frame = fromFrame;
    step.to = to;
    step.toFrame = toFrame;
  }

  void freeUnusedArguments(const Block &body) {
    if (!lifetimes)
      return;
    for (auto &argument : body.getArguments())
      if (lifetimes->isUnused(argument.get()) && !lifetimes->isKept(argument.get()))
        free(argument.get());
  }

  void runLoop(Op &op, int64_t begin, int64_t end) {
    if (begin >= end)
      return bindEmpty(op);
    int64_t step = op.reverse ? -1 : 1, first = op.reverse ? end - 1 : begin, last = op.reverse ? begin : end - 1;
    Frame outer = frame;
    setIteration(op, first);
    for (unsigned k = 0; k < op.getNumOperands(); ++k)
      if (!received.count(op.getBody(first).getArgument(k)))
        bind(op.getOperand(k), outer, op.getBody(first).getArgument(k), frame);
    freeUnusedArguments(op.getBody(first));
    if (lifetimes) {
      std::swap(frame, outer);
      freeAll(entryReleases);
      std::swap(frame, outer);
    }
    for (int64_t i = first;; i += step) {
      Block &body = op.getBody(i);
      Op *yield = body.getTerminator();
      for (auto &inner : body)
        if (inner.get() != yield)
          runOp(*inner);
      Frame current = frame, next = outer;
      if (i != last) {
        setIteration(op, i + step);
        next = frame;
      }
      for (unsigned k = 0; yield && k < yield->getNumOperands(); ++k) {
        const Value *to = i == last ? op.getResult(k) : op.getBody(i + step).getArgument(k);
        if (i != last || isWanted(to))
          bind(yield->getOperand(k), current, to, next);
      }
      if (lifetimes) {
        frame = current;
        freeAll(lifetimes->getReleases(yield));
      }
      frame = next;
      if (i == last)
        return;
      freeUnusedArguments(op.getBody(i + step));
    }
  }

  /// A repeat that runs no iteration hands on what it was given.
  void bindEmpty(Op &op) {
    for (unsigned k = 0; k < op.getNumResults(); ++k)
      bind(op.getOperand(k), frame, op.getResult(k), frame);
  }

  //===--- items ----------------------------------------------------------===//

  void runItems(const std::vector<ProgramItem> &items) {
    received.clear();
    frame.clear();
    std::vector<llvm::SmallVector<const Value *, 2>> releases(2 * items.size());
    for (auto [value, time] : (*uses)[place])
      if (!getLoop(value) && !outlivesUnit(value))
        releases[time].push_back(value);
    const ProgramItem *loop = findPipelinedLoop(*program, items);
    for (unsigned i = 0; i < items.size(); ++i) {
      const ProgramItem &item = items[i];
      entryReleases = releases[2 * i];
      switch (item.kind) {
      case ProgramItem::Kind::Op:
        emit(Step::Kind::Run).op = item.op;
        for (auto &result : item.op->getResults())
          if (!isWanted(result.get()))
            free(result.get());
        break;
      case ProgramItem::Kind::Loop:
        runLoop(*item.op, item.begin, item.end);
        break;
      case ProgramItem::Kind::Recv:
        receive(item, loop);
        break;
      case ProgramItem::Kind::Send:
        send(item, loop);
        break;
      }
      freeAll(releases[2 * i + 1]);
    }
  }

  void receive(const ProgramItem &item, const ProgramItem *range) {
    if (!item.values.empty())
      if (const Op *loop = getLoop(item.values.front()))
        setIteration(*loop, !range ? passingThrough : loop->reverse ? range->end - 1 : range->begin);
    for (unsigned k = 0; k < item.values.size(); ++k) {
      Step &step = emit(Step::Kind::Receive);
      step.value = item.values[k];
      step.peer = item.peer;
      step.slot = k;
      received.insert(item.values[k]);
    }
    for (const Value *value : item.values)
      if (!getLoop(value) && !isWanted(value))
        free(value);
  }

  void send(const ProgramItem &item, const ProgramItem *range) {
    for (unsigned k = 0; k < item.values.size(); ++k) {
      Step &step = emit(Step::Kind::Send);
      step.value = range ? range->op->getResult(k) : item.values[k];
      step.peer = item.peer;
      step.slot = k;
      if (!range && getLoop(item.values[k]))
        free(item.values[k]); // passed through
    }
  }

  /// The iteration of what a virtual stage without iterations hands on: it belongs to none of its own.
  static constexpr uint64_t passingThrough = uint64_t(1) << 62;

  Graph &graph;
  const Program *program;
  const Lifetimes *lifetimes;
  const ChainUses *uses = nullptr; ///< Of the current unit's chain, in which it has this place.
  unsigned place = 0;
  llvm::SmallVector<const Value *, 2> entryReleases; ///< What dies when the current item is entered.
  llvm::DenseSet<const Value *> received;
  Frame frame;
  unsigned microbatch = 0, unit = 0, self = 0;
  std::vector<Step> steps;
};
} // namespace

std::vector<Step> stage::listSteps(const Program &program, const StageProgram &stage, const Lifetimes &lifetimes) {
  return StepLister(*program.graph, &program, &lifetimes).run(stage);
}

std::vector<Step> stage::listUnshardedSteps(Graph &graph) { return StepLister(graph, nullptr, nullptr).runUnsharded(); }

std::vector<Step> stage::listForwardSteps(Graph &graph, unsigned microbatch) {
  return StepLister(graph, nullptr, nullptr).runForward(microbatch);
}
