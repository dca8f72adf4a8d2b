//===- StepBound.cpp - a time before which no step ends -------------------===//
#include "stage/Time/StepBound.h"
#include "stage/Tasks/OpCosts.h"
#include "stage/Time/RankClasses.h"
#include "stage/Time/StepTime.h"
#include "stage/Walk/UnitWalk.h"
#include "llvm/ADT/SetVector.h"

using namespace stage;

/// Whether each result is only added to gradients, perhaps after a reshard.
static bool leadsToGradients(const Op &op) {
  bool isUsed = false;
  for (const auto &result : op.getResults())
    for (const auto &[user, number] : result->getUses()) {
      isUsed = true;
      if (!isAddition(user->kind) && !(isReshard(user->kind) && leadsToGradients(*user)))
        return false;
    }
  return isUsed;
}

namespace {
/// What each op takes alone, on the first rank of a stage.
class OpPrices {
public:
  explicit OpPrices(const TimedPart &part)
      : program(*part.program), graph(*program.graph), machine(part.machine), kernels(part.kernels.get()),
        groups(program), costs(graph) {
    int64_t ranksOfStage = graph.pipeline.axis ? graph.mesh.getStride(*graph.pipeline.axis) : 0;
    areAlike = llvm::all_of(machine.getBlockSizes(), [&](int64_t block) { return ranksOfStage % block == 0; });
  }

  /// A stage whose groups lie on the machine as those of this one do.
  unsigned findAlike(unsigned stage) const { return areAlike ? 0 : stage; }

  enum class Role : uint8_t {
    None,    ///< It has no node, or takes nothing here.
    Compute, ///< On the stream of computation.
    Beside,  ///< Computes on a stream of its own.
    Collective,
  };
  struct OpBound {
    Role role = Role::None;
    Ticks price = 0; ///< 0: the machine does not say, or ranks differ.
  };
  OpBound get(const Op &op, BoundedOps ops, unsigned stage, unsigned environment) {
    auto [found, isNew] = known.try_emplace(&op);
    Known &of = found->second;
    if (isNew) {
      of.role = findRole(op);
      of.isOfGradients = of.role != Role::None && isOfGradients(op);
    }
    if (of.role == Role::None || (of.isOfGradients && ops == BoundedOps::OfMicrobatches))
      return {};
    // What computes takes the same on all stages.
    bool isOfStage = of.role == Role::Collective;
    uint64_t place = uint64_t(environment) * program.numStages + (isOfStage ? stage : 0);
    if (of.place != place) {
      auto [price, isNewPrice] = prices.try_emplace({&op, place}, 0);
      if (isNewPrice)
        price->second = isOfStage ? findCollective(op, stage, environment) : findWork(op, environment);
      of.place = place;
      of.price = price->second;
    }
    return {of.role, of.price};
  }

private:
  /// Of an op its role, and its price where it was asked for last.
  struct Known {
    Role role = Role::None;
    bool isOfGradients = false;
    uint64_t place = ~uint64_t(0);
    Ticks price = 0;
  };

  Role findRole(const Op &op) const {
    if (isCollective(op.kind))
      return Role::Collective;
    bool computes = op.kind == OpKind::Compute || op.kind == OpKind::Update || isAddition(op.kind);
    if (!computes || runsOnHost(op) || !hasNode(graph, op))
      return Role::None;
    return op.stream ? Role::Beside : Role::Compute;
  }

  /// Adds gradients up, moves them there, or makes them without a product.
  bool isOfGradients(const Op &op) {
    auto multiplies = [&] {
      const FlopCounts &flops = costs.getCost(op).flops;
      return !flops.contraction.isConstant(0) || !flops.attention.isConstant(0);
    };
    if (isAddition(op.kind) || op.kind == OpKind::Update)
      return true;
    return leadsToGradients(op) && !(op.kind == OpKind::Compute && multiplies());
  }

  std::optional<int64_t> evaluate(Size size, unsigned environment) {
    if (bound != environment) {
      binding = graph.getBinding(environment);
      bound = environment;
    }
    return costs.findCount(size, binding, environment);
  }

  Ticks findWork(const Op &op, unsigned environment) {
    bool isKnown = true;
    Work work = getWork(graph, op, costs.getCost(op), kernels, [&](Size size) {
      std::optional<int64_t> count = evaluate(size, environment);
      isKnown &= count.has_value();
      return count.value_or(1);
    });
    llvm::StringRef missing;
    return isKnown ? machine.ofWork(work, missing).value_or(0) : 0;
  }

  Ticks findCollective(const Op &op, unsigned stage, unsigned environment) {
    std::optional<unsigned> kind = groups.find(op, stage);
    std::optional<int64_t> bytes = evaluate(costs.getCost(op).bytes, environment);
    if (!kind || !bytes)
      return 0;
    llvm::StringRef missing;
    return machine.ofCollective(getCollectiveKind(op.kind), *bytes, getPlace(*kind, stage), missing).value_or(0);
  }

  const GroupPlace &getPlace(unsigned kind, unsigned stage) {
    auto known = places.find({kind, stage});
    if (known != places.end())
      return known->second;
    int64_t rank = graph.pipeline.axis ? int64_t(stage) * graph.mesh.getStride(*graph.pipeline.axis) : 0;
    std::vector<int64_t> members = RankClasses::listMembers(program, groups.getKind(kind), rank);
    return places.emplace(std::pair(kind, stage), machine.findPlace(members)).first->second;
  }

  const Program &program;
  const Graph &graph;
  const Machine &machine;
  const Kernels *kernels;
  const GroupTable groups;
  bool areAlike = false; ///< The stages: blocks of the network begin where stages do.
  OpCosts costs;
  SizeBinding binding;
  std::optional<unsigned> bound; ///< The environment of the binding.
  llvm::DenseMap<const Op *, Known> known;
  llvm::DenseMap<std::pair<const Op *, uint64_t>, Ticks> prices; ///< By environment, and stage where stages differ.
  std::map<std::pair<unsigned, unsigned>, GroupPlace> places;
};

/// What a stream does at least; null: communication on the stream that is always there.
using StreamTicks = llvm::SmallDenseMap<const Stream *, Ticks, 4>;

/// A unit that begins at 0.
class UnitBounder : private UnitWalk {
public:
  UnitBounder(OpPrices &prices, BoundedOps ops, unsigned stage, unsigned environment)
      : prices(prices), ops(ops), stage(stage), environment(environment) {}

  void run(const UnitTemplate &unit, bool hasPrefetches) {
    walksAll = hasPrefetches;
    walk(unit.items);
  }

  Ticks computed = 0;   ///< When the compute stream is at the end.
  Ticks busy = 0;       ///< What the compute stream does.
  StreamTicks messages; ///< What collectives take.

private:
  /// Of what an op of the unit waits for.
  Ticks runCollective(const Op &op, Ticks price, Ticks ready) {
    messages[op.stream] += price;
    if (!ready)
      return 0; // it may have run before the unit
    Ticks &end = ends[op.stream];
    return end = std::max(end, ready) + price;
  }

  /// Of what has arrived: behind the compute of the unit before, and ahead of this unit's.
  Ticks gather(const Op &op, Ticks price) {
    messages[op.stream] += price;
    Ticks &end = ends[op.stream];
    return arrived = end = std::max(end, computed) + price;
  }

  void visitOp(const Op &op) override {
    Ticks ready = 0;
    for (const Value *operand : op.getOperands())
      ready = std::max(ready, made.lookup(getName(operand)));
    auto [role, price] = prices.get(op, ops, stage, environment);
    switch (role) {
    case OpPrices::Role::Compute:
      busy += price;
      ready = computed = std::max({ready, computed, arrived}) + price;
      break;
    case OpPrices::Role::Beside:
      if (ready)
        ready += price;
      break;
    case OpPrices::Role::Collective:
      ready = isGatherOfMessage(op) ? gather(op, price) : runCollective(op, price, ready);
      break;
    case OpPrices::Role::None:
      break;
    }
    if (ready)
      for (const auto &result : op.getResults())
        made[getName(result.get())] = ready;
  }
  void bind(IterationValue from, IterationValue to) override {
    if (Ticks time = made.lookup(from))
      made[to] = time;
  }

  /// When streams are at the end of an iteration, and when what it hands on is made; 0: before the unit.
  struct IterationEnd {
    Ticks computed = 0, busy = 0;
    StreamTicks ends, messages;
    llvm::SmallVector<Ticks, 8> handedOn;

    /// By how much all of it is later than after the iteration before; nothing if that differs.
    std::optional<Ticks> findDelay(const IterationEnd &before) const {
      Ticks delay = computed - before.computed;
      if (ends.size() != before.ends.size())
        return std::nullopt;
      for (auto [stream, end] : ends)
        if (auto known = before.ends.find(stream); known == before.ends.end() || end - known->second != delay)
          return std::nullopt;
      for (auto [now, then] : llvm::zip(handedOn, before.handedOn))
        if ((now || then) && now - then != delay)
          return std::nullopt;
      return delay;
    }
  };

  /// Where all ends are as much later as in the iteration before, they will be in the next one: what is made outside of
  /// the repeat has decided nothing then, and decides less and less. All but the last such iteration are left out.
  int64_t getNextIteration(const ProgramItem &loop, int64_t iteration) override {
    int64_t next = UnitWalk::getNextIteration(loop, iteration);
    if (walksAll || loop.op->bodies.size() > 1)
      return next;
    llvm::SmallSetVector<IterationValue, 8> handedOn;
    for (const Value *value : loop.op->getBody(iteration).getTerminator()->getOperands())
      handedOn.insert(getName(value));
    IterationEnd now{computed, busy, ends, messages, {}};
    for (IterationValue value : handedOn)
      now.handedOn.push_back(made.lookup(value));
    IterationEnd before = std::exchange(endBefore, now);
    if (iteration == loop.getIteration(0))
      return next;
    std::optional<Ticks> delay = now.findDelay(before);
    int64_t last = loop.getIteration(loop.getNumIterations() - 1), numSkipped = std::abs(last - next);
    if (!delay || !numSkipped)
      return next;
    Ticks later = *delay * numSkipped;
    computed += later;
    busy += (busy - before.busy) * numSkipped;
    for (auto &[stream, end] : ends)
      end += later;
    for (auto &[stream, ticks] : messages)
      ticks += (ticks - before.messages.lookup(stream)) * numSkipped;
    for (IterationValue value : handedOn)
      if (Ticks &time = made[value])
        time += later;
    return last;
  }
  void visitReceive(const ProgramItem &, unsigned, IterationValue) override {}
  void visitSend(const ProgramItem &, unsigned, IterationValue) override {}

  OpPrices &prices;
  const BoundedOps ops;
  const unsigned stage, environment;
  bool walksAll = false;                      ///< Gathers run ahead of their iterations.
  IterationEnd endBefore;                     ///< Of the iteration that was walked before.
  Ticks arrived = 0;                          ///< When what comes in pieces has been gathered.
  StreamTicks ends;                           ///< Of collectives behind something that the unit computes.
  llvm::DenseMap<IterationValue, Ticks> made; ///< When values are, behind something that the unit computes.
};
} // namespace

namespace {
/// What a unit takes at least.
struct UnitBound {
  Ticks computed = 0, busy = 0;
  StreamTicks messages;
};

/// Of all units of a program, those that run the same once.
class UnitBounds {
public:
  UnitBounds(const Program &program, OpPrices &prices, BoundedOps ops) : program(program), prices(prices), ops(ops) {}

  const UnitBound &get(unsigned stage, const Unit &unit) {
    unsigned environment = program.graph->pipeline.environments.getAlike(unit.environment);
    uint64_t place = (uint64_t(stage) * program.numChunks + unit.chunk) * numPhaseKinds + unsigned(unit.kind);
    auto [known, isNew] = ofUnits.try_emplace({place, environment}, nullptr);
    if (isNew)
      known->second = find(stage, environment, program.stages[stage].find(unit.kind, unit.chunk));
    return *known->second;
  }

private:
  /// What decides the ops of a unit, one after the other: of equal iterations only their number.
  using Key = std::vector<std::tuple<const Op *, int64_t, int64_t>>;

  const UnitBound *find(unsigned stage, unsigned environment, const UnitTemplate *unit) {
    stage = prices.findAlike(stage);
    Key key = {{nullptr, stage, environment}};
    for (const ProgramItem &item : unit ? llvm::ArrayRef(unit->items) : llvm::ArrayRef<ProgramItem>()) {
      bool hasCases = item.op && item.op->bodies.size() > 1;
      if (item.op)
        key.emplace_back(item.op, item.getNumIterations(), hasCases ? item.begin : 0);
    }
    auto [known, isNew] = all.try_emplace(std::move(key));
    if (isNew && unit && !(ops == BoundedOps::OfMicrobatches && isOncePerStep(unit->kind))) {
      UnitBounder bounder(prices, ops, stage, environment);
      bounder.run(*unit, program.graph->prefetch > 0);
      known->second = {bounder.computed, bounder.busy, std::move(bounder.messages)};
    }
    return &known->second;
  }

  const Program &program;
  OpPrices &prices;
  const BoundedOps ops;
  std::map<Key, UnitBound> all;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, const UnitBound *> ofUnits; ///< By stage, kind and chunk.
};
} // namespace

/// Whether each unit waits for a message of the unit that the schedule puts before it. A value that nothing uses has no
/// gradient, so that stages may have nothing to send back.
static bool receivesAsScheduled(const Program &program, const Schedule &schedule) {
  for (const StageProgram &stage : program.stages)
    for (const UnitTemplate &unit : stage.templates) {
      if (!hasMessages(unit.kind))
        continue;
      unsigned virtualStage = schedule.getVirtualStage(unit.chunk, stage.stage);
      std::optional<unsigned> needed =
          isForward(unit.kind) ? schedule.getPrevious(virtualStage) : schedule.getNext(virtualStage);
      auto isFrom = [&](const ProgramItem &item) {
        return item.kind == ProgramItem::Kind::Recv && !item.channel && !item.values.empty() && item.peer == *needed;
      };
      if (needed && llvm::none_of(unit.items, isFrom))
        return false;
    }
  return true;
}

/// The earliest start of what makes the last gradients of a chunk: before that none of its gradients is whole.
static Ticks findLastGradients(llvm::ArrayRef<Unit> units, llvm::ArrayRef<int64_t> starts) {
  llvm::SmallDenseMap<std::pair<unsigned, unsigned>, Ticks> ofChunks; // and kinds
  for (auto [unit, start] : llvm::zip(units, starts))
    if (!isForward(unit.kind) && !isOncePerStep(unit.kind))
      ofChunks[{unit.chunk, unsigned(unit.kind)}] = start;
  std::optional<Ticks> first;
  for (auto [chunk, start] : ofChunks)
    first = std::min(first.value_or(start), start);
  return first.value_or(0);
}

struct StepBound::State {
  State(const Program &program, std::vector<TimedPart> parts)
      : program(program), parts(std::move(parts)), prices(this->parts.front()),
        schedule(program.getSchedule(/*withStep=*/true)) {
    bool hasOrder = program.graph->pipeline.send != MessageMode::Early && receivesAsScheduled(program, schedule);
    waits = hasOrder && llvm::none_of(schedule.units, [](const std::vector<Unit> &units) { return hasPairs(units); });
  }

  const Program &program;
  const std::vector<TimedPart> parts;
  OpPrices prices;
  const Schedule schedule;
  bool waits = false; ///< Each unit for the message of the one that is before it in the schedule.
};

StepBound::StepBound(const Program &program, const Machine &machine, const Runtime &runtime, DiagnosticEngine &diags) {
  std::vector<TimedPart> parts = findUsed({{&program, machine, runtime}}, TaskOptions(), diags);
  if (!parts.empty() && parts.front().machine.isDeclared())
    state = std::make_unique<State>(program, std::move(parts));
}

StepBound::StepBound(StepBound &&) = default;
StepBound::~StepBound() = default;

Ticks StepBound::find(BoundedOps ops) {
  if (!state)
    return 0;
  UnitBounds bounds(state->program, state->prices, ops);
  std::vector<StreamTicks> streams(state->program.stages.size());
  const Schedule &schedule = state->schedule;
  auto isOfPair = [&](UnitRef ref) {
    llvm::ArrayRef<Unit> units = schedule.units[ref.stage];
    return units[ref.position].overlapsNext || getPairBegin(units, ref.position) != ref.position;
  };
  ScheduleTimes times = simulate(schedule, [&](UnitRef ref) {
    const UnitBound &bound = bounds.get(ref.stage, schedule.get(ref));
    for (auto [stream, ticks] : bound.messages)
      streams[ref.stage][stream] += ticks;
    return isOfPair(ref) ? bound.busy : bound.computed;
  });
  Ticks least = state->waits ? times.makespan : *std::max_element(times.busy.begin(), times.busy.end());
  for (unsigned stage = 0; stage != schedule.stages; ++stage) {
    for (auto [stream, ticks] : streams[stage])
      least = std::max(least, ticks);
    if (!state->waits)
      continue;
    StreamTicks ofStep;
    for (const Unit &unit : schedule.units[stage])
      if (isOncePerStep(unit.kind))
        for (auto [stream, ticks] : bounds.get(stage, unit).messages)
          ofStep[stream] += ticks;
    for (auto [stream, ticks] : ofStep)
      least = std::max(least, findLastGradients(schedule.units[stage], times.start[stage]) + ticks);
  }
  return least;
}
