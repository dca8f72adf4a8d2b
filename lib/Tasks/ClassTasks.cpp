//===- ClassTasks.cpp - what the ranks of a class do -------------------===//
#include "TaskWalk.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Support/Digits.h"
#include "stage/Tasks/Diagnostics.h"
#include "stage/Tasks/ShapeSizes.h"
#include "stage/Walk/PairOrder.h"

using namespace stage;

llvm::SmallVector<const Exchange *, 1> stage::listSendingExchanges(const StageProgram &stage) {
  llvm::SmallVector<const Exchange *, 1> exchanges;
  for (const UnitTemplate &unit : stage.templates)
    for (const ProgramItem &item : unit.items)
      if (item.kind == ProgramItem::Kind::Send && item.channel &&
          !llvm::is_contained(exchanges, item.channel->exchange.get()))
        exchanges.push_back(item.channel->exchange.get());
  return exchanges;
}

/// The units of several steps. Microbatches count on; what is posted in a step is posted when its units begin, or
/// later.
static void repeatSteps(StageProgram &own, unsigned steps, unsigned microbatches) {
  size_t numUnits = own.units.size();
  for (size_t unit = own.posts.size(); !own.posts.empty() && unit < numUnits; ++unit)
    own.posts.push_back(unit);
  own.units.reserve(numUnits * steps);
  for (unsigned step = 1; step < steps; ++step)
    for (size_t i = 0; i < numUnits; ++i) {
      Unit unit = own.units[i];
      if (!isOncePerStep(unit.kind))
        unit.microbatch += step * microbatches;
      own.units.push_back(unit);
      if (!own.posts.empty())
        own.posts.push_back(own.posts[i] + step * numUnits);
    }
}

/// What ranks of the class run, where it is not what the stage runs: several steps, and a value for each message that
/// they send to another part.
static std::optional<StageProgram> makeOwn(const Program &program, const RankClass &rankClass, unsigned steps) {
  if (rankClass.messages.empty() && steps == 1)
    return std::nullopt;
  StageProgram own = program.stages[rankClass.stage];
  repeatSteps(own, steps, program.microbatches);
  for (UnitTemplate &unit : own.templates) {
    for (ProgramItem &item : unit.items)
      for (auto [exchange, count] : rankClass.messages)
        if (item.kind == ProgramItem::Kind::Send && item.channel && item.channel->exchange.get() == exchange)
          item.values = std::vector<Value *>(count, item.values.front());
    llvm::erase_if(unit.items, [](const ProgramItem &item) { return item.channel && item.values.empty(); });
  }
  return own;
}

ClassTasks::ClassTasks(const Program &program, const GroupTable &groups, const TaskOptions &options,
                       const RankClass &rankClass, DiagnosticEngine &diags, OpCosts *costs, const Kernels *kernels)
    : program(program), graph(*program.graph), groups(groups), options(options), diags(diags), kernels(kernels),
      own(makeOwn(program, rankClass, options.steps)), stage(own ? *own : program.stages[rankClass.stage]),
      binding(graph.binding), sizes(binding, diags), additions(program.buffers), producers(graph, stage, additions),
      ownCosts(costs ? nullptr : std::make_unique<OpCosts>(graph)), costs(costs ? *costs : *ownCosts),
      hasCoordinates(!rankClass.coordinates.empty()), slowness(rankClass.slowness), numIssued(groups.getNumKinds() + 2),
      chains(firstDeclared + graph.streams.size()) {
  for (auto [axis, coordinate] : rankClass.coordinates)
    coordinates.bind(getCoordinateSymbol(graph.sizes, graph.mesh[axis]).getSymbol(), coordinate);
  binding.bind(coordinates);
  measured = binding;
  select(0);
  virtualStageOfChunk.assign(program.numChunks, program.virtualStages.size());
  for (unsigned number = 0; number < program.virtualStages.size(); ++number)
    if (auto [where, chunk] = program.virtualStages[number]; where == stage.stage)
      virtualStageOfChunk[chunk] = number;
  placeUnits();
  for (const TaskLayout &layout : layouts)
    additions.addLayout(graph, layout);
  for (const PlacedUnit &unit : units)
    numPermutes += getNumCollectives(unit).back();
  numIssued.back() = getNumTags();
  if (options.names)
    names.emplace(graph);
}

void ClassTasks::select(unsigned number) {
  environment = graph.pipeline.environments.getAlike(number);
  bound = number;
  graph.select(binding, number);
}

void ClassTasks::placeUnits() {
  for (const UnitTemplate &unit : stage.templates)
    layouts.emplace_back(graph, unit.items);
  unitsOfLayout.resize(layouts.size());
  uint64_t next = 0;
  arrivals.emplace(graph, stage, options.steps);
  llvm::DenseMap<std::pair<unsigned, unsigned>, const PlacedUnit *> latest; // (microbatch, chunk)
  llvm::DenseMap<std::pair<unsigned, unsigned>, const PlacedUnit *> giving; // (chunk and direction, microbatch)
  const PlacedUnit *before = nullptr;                                       // of what runs once per step
  UnitChains kinds = stage.listChains();
  const PlacedUnit *updates = nullptr;
  size_t unitsPerStep = stage.units.size() / options.steps;
  for (const Unit &unit : stage.units) {
    if (!units.empty() && units.size() % unitsPerStep == 0) {
      updates = &units.back();
      before = nullptr;
    }
    const UnitTemplate *found = stage.find(unit.kind, unit.chunk);
    PlacedUnit &placed = units.emplace_back();
    placed.layout = &layouts[found - stage.templates.data()];
    unitsOfLayout[found - stage.templates.data()].push_back(units.size() - 1);
    placed.base = next;
    placed.kind = unit.kind;
    placed.step = (units.size() - 1) / unitsPerStep;
    placed.updates = updates;
    placed.chain = kinds.ofUnit[units.size() - 1];
    next += placed.layout->getNumNodes();
    if (units.size() > 1 && stage.units[units.size() - 2].overlapsNext)
      pairUp(units[units.size() - 2], placed);
    if (isOncePerStep(unit.kind)) {
      placed.previous = std::exchange(before, &placed);
      continue;
    }
    placed.microbatch = unit.microbatch;
    placed.environment = unit.environment;
    if (const auto &named = graph.pipeline.unitNames; !named.empty())
      placed.ownName = named[unit.microbatch];
    if (program.numChunks > 1)
      placed.chunk = unit.chunk;
    placed.loader = arrivals->getLoader(units.size() - 1);
    const PlacedUnit *&previous = latest[{unit.microbatch, unit.chunk}];
    placed.previous = std::exchange(previous, &placed);
    if (unit.feeder)
      placed.feeder = latest.lookup({*unit.feeder, unit.chunk});
    if (!hasMessages(unit.kind))
      continue;
    bool goesUp = isForward(unit.kind);
    if (const ProgramItem *taken = findHandedIn(found->items))
      placed.giver = giving.lookup({program.virtualStages[taken->peer].second * 2 + goesUp, unit.microbatch});
    if (findHandedOn(found->items))
      giving[{unit.chunk * 2 + goesUp, unit.microbatch}] = &placed;
  }
}

void ClassTasks::pairUp(PlacedUnit &first, PlacedUnit &second) {
  auto order = pairs.find({first.layout, second.layout});
  if (order == pairs.end())
    order = pairs
                .emplace(std::pair(first.layout, second.layout),
                         PairOrder(graph, first.layout->getItems(), second.layout->getItems()))
                .first;
  first.pair = second.pair = &order->second;
  second.placeInPair = 1;
  second.base = first.base;
}

unsigned ClassTasks::findUnit(uint64_t id, unsigned from) const {
  while (from + 1 < units.size() && units[from + 1].base <= id)
    ++from;
  const PlacedUnit &unit = units[from];
  return unit.pair ? from - unit.placeInPair + unit.pair->find(id - unit.base).unit : from;
}

unsigned ClassTasks::getVirtualStage(const PlacedUnit &unit) const {
  return virtualStageOfChunk[unit.chunk.value_or(0)];
}

llvm::SmallVector<uint64_t, 4> ClassTasks::getTags(const PlacedUnit &unit) const {
  llvm::SmallVector<uint64_t, 4> tags;
  for (const Segment &segment : unit.layout->getSegments()) {
    const ProgramItem &item = *segment.item;
    if (!item.isMessage() || item.values.empty() || item.isLocal)
      continue;
    if (item.channel && !item.channel->isOfCache()) {
      tags.push_back(getTag(*item.channel, unit));
      continue;
    }
    for (unsigned value : {size_t(0), item.values.size() - 1})
      tags.push_back(getTag(unit, getVirtualStage(unit), item.peer, value));
  }
  return tags;
}

/// One number per direction, boundary, microbatch and value, so that no two messages in flight share one.
uint64_t ClassTasks::getTag(const PlacedUnit &unit, unsigned from, unsigned to, unsigned value) const {
  uint64_t direction = isBackward(unit.kind), boundary = std::min(from, to);
  return ((direction * program.virtualStages.size() + boundary) * getNumMicrobatches() + unit.microbatch) *
             groups.getMostValues() +
         value;
}

/// Between ranks of two parts there are no other messages than those of channels.
uint64_t ClassTasks::getTag(const Channel &channel, const PlacedUnit &unit) const {
  return uint64_t(channel.number) * getNumMicrobatches() + unit.microbatch;
}

uint64_t ClassTasks::getNumTags() const {
  return 2 * program.virtualStages.size() * getNumMicrobatches() * groups.getMostValues();
}

bool ClassTasks::checkTags() const {
  if (hasEnoughTags())
    return true;
  diags.report(graph.pipeline.loc, diag::TooManyTags) << int64_t(getNumTags() + numPermutes) << maxTag;
  return false;
}

unsigned ClassTasks::getSlot(const RankSlot &slot) {
  auto [known, isNew] =
      slotNumbers.try_emplace({unsigned(slot.kind), slot.groupKind, slot.stage, slot.axis, slot.shift, slot.exchange,
                               slot.batch, slot.size ? slot.size.getNode() : nullptr, slot.least, slot.environment},
                              slots.size());
  if (isNew)
    slots.push_back(slot);
  return known->second;
}

int64_t ClassTasks::evaluateOf(const Op &op, Size size) {
  std::optional<int64_t> known = hasCoordinates ? std::nullopt : costs.findCount(size, binding, environment);
  return known ? *known : evaluateShape(size, op, binding, sizes);
}

TaskValue ClassTasks::makeNumber(Size size, uint64_t least, const Op *op, const Value *value) {
  bool isSlot = options.keepsSizes && graph.variesByUnit(size);
  for (AxisId axis : toList(costs.getAxes(size)))
    isSlot |= !binding.lookup(getCoordinateSymbol(graph.sizes, graph.mesh[axis]).getSymbol());
  if (!isSlot && !hasCoordinates)
    if (std::optional<int64_t> known = costs.findCount(size, binding, environment))
      return std::max(least, uint64_t(*known));
  if (!isSlot)
    return std::max(least, op ? sizes.evaluate(size, *op) : sizes.evaluate(size, *value));
  RankSlot slot{RankSlot::Kind::Size};
  slot.size = size;
  slot.least = least;
  slot.op = op;
  slot.value = value;
  slot.environment = environment;
  return TaskValue::slot(getSlot(slot));
}

//===----------------------------------------------------------------------===//
// Numbers of an op
//===----------------------------------------------------------------------===//

const ClassTasks::OpNumbers &ClassTasks::getNumbers(const Op &op) {
  auto [it, isNew] = numbers.try_emplace(&op);
  OpNumbers &n = it->second;
  if (!isNew)
    return n;
  const OpCost &cost = costs.getCost(op);
  if (options.works)
    n.cost = cost;
  if (isCollective(op.kind)) {
    n.commSize = cost.bytes;
  } else if (isCopy(op.kind)) {
    n.tensorSize = cost.bytes;
  } else if (op.kind != OpKind::Permute) {
    // A simulator's time is that of FLOPs or that of bytes: both take as much longer.
    auto slow = [&](Size size) { return slowness ? (size * slowness).ceilDiv(graph.sizes.one()) : size; };
    n.numOps = slow(cost.getComputed());
    if (!(cost.flops.contraction + cost.flops.attention).isConstant(0))
      n.otherOps = slow(cost.flops.other);
    n.recomputedOps = slow(cost.recomputeFlops);
    n.tensorSize = slow(cost.bytes);
  }
  n.varies = llvm::any_of(n.list(), [&](Size size) { return graph.variesByUnit(size); });
  if (const OpKernel *kernel = kernels ? kernels->find(op) : nullptr)
    for (Size size : {kernel->bytes, kernel->besideBytes, kernel->host})
      n.varies |= size && graph.variesByUnit(size);
  return n;
}

const ClassTasks::OpFacts &ClassTasks::getFacts(const Op &op) {
  const OpNumbers &n = getNumbers(op);
  auto [it, fresh] = facts.try_emplace({&op, n.varies ? environment : 0});
  if (!fresh)
    return *it->second;
  it->second = std::make_unique<OpFacts>();
  OpFacts &f = *it->second;
  f.fields.op = &op;
  if (isCollective(op.kind)) {
    f.fields.kind = TaskKind::Collective;
    if (std::optional<unsigned> kind = groups.find(op, stage.stage))
      f.fields.group = TaskValue::slot(getSlot({RankSlot::Kind::Group, *kind}));
    f.networkDims.resize(graph.mesh.getNumNetworkDims());
    for (AxisId axis : op.axes)
      if (!f.networkDims.empty() && graph.mesh[axis].size > 1)
        f.networkDims[*graph.mesh[axis].networkDim] = 1;
    f.fields.networkDims = f.networkDims;
  } else if (isCopy(op.kind)) {
    f.fields.kind = op.kind == OpKind::Fetch || op.kind == OpKind::Load ? TaskKind::Load : TaskKind::Store;
  } else {
    f.fields.runsOnHost = runsOnHost(op);
  }
  if (isCollective(op.kind) || op.kind == OpKind::Permute)
    f.groupKind = getGroupKind(op);
  if (n.commSize)
    f.fields.bytes = makeNumber(n.commSize, 1, &op, nullptr);
  // A price that depends on work depends on no other number of FLOPs.
  bool hasWork = options.works && f.fields.kind == TaskKind::Compute;
  if (n.numOps && !hasWork)
    f.fields.flops = makeNumber(n.numOps, 1, &op, nullptr);
  if (n.otherOps && !hasWork)
    f.fields.otherFlops = makeNumber(n.otherOps, 0, &op, nullptr);
  if (n.recomputedOps && !hasWork)
    f.fields.recomputedFlops = makeNumber(n.recomputedOps, 0, &op, nullptr);
  if (n.tensorSize && (!hasWork || slowness))
    f.fields.bytes = makeNumber(n.tensorSize, 1, &op, nullptr);
  if (hasWork) {
    auto find = [&] { return getWork(graph, op, *n.cost, kernels, [&](Size size) { return evaluateOf(op, size); }); };
    f.work = hasCoordinates ? find() : costs.getWork(op, n.varies ? environment : 0, find);
    f.fields.work = &*f.work;
    if (n.tensorSize && !slowness)
      f.fields.bytes = std::max<uint64_t>(1, uint64_t(f.work->bytes));
  }
  forEachAddition(graph, op, [&](const Value *buffer) { f.additions.push_back(buffer); });
  f.stream = getStream(op);
  f.fields.stream = getNumber(f.stream);
  if (options.names) {
    f.name = names->get(op);
    f.fields.opType = f.name.opType;
  }
  return f;
}

const std::optional<std::vector<unsigned>> &ClassTasks::getWidths(const PlacedUnit &unit) {
  auto [known, isNew] = varyingSizes.try_emplace(unit.layout);
  if (isNew) {
    auto add = [&](Size size) {
      if (size && graph.variesByUnit(size))
        known->second.push_back(size);
    };
    auto addMessage = [&](const Value &value) {
      add(getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding));
    };
    forEachOp(unit.layout->getItems(), [&](Op &op, int64_t) {
      llvm::for_each(getNumbers(op).list(), add);
      if (op.kind == OpKind::Permute)
        for (const Value *moved : {op.getOperand(0), op.getResult()})
          addMessage(*moved);
    });
    for (const ProgramItem &item : unit.layout->getItems())
      for (const Value *value : item.values)
        addMessage(*value);
    llvm::sort(known->second, [](Size a, Size b) { return a.getNode() < b.getNode(); });
    known->second.erase(std::unique(known->second.begin(), known->second.end()), known->second.end());
  }
  unsigned sizesOf = known->second.empty() ? 0 : graph.pipeline.environments.getAlike(unit.environment);
  auto [found, isFirst] = widths.try_emplace({unit.layout, sizesOf}, std::vector<unsigned>());
  if (!isFirst || known->second.empty())
    return found->second;
  graph.select(measured, sizesOf);
  for (Size size : known->second) {
    SizeValue value = evaluateCount(size, measured);
    if (!value) { // differs from rank to rank
      found->second.reset();
      break;
    }
    found->second->push_back(value.value.num ? getVarintSize(uint64_t(value.value.num)) : 0);
  }
  return found->second;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void ClassTasks::makeUnit(unsigned number, Sink sink) {
  const PlacedUnit &unit = units[number];
  if (!unit.pair)
    TaskWalk(*this, number, sink).run();
  else if (unit.placeInPair == 0)
    makePair(number, sink);
  endUnit(number);
}

namespace {
/// One thing that a unit does, as UnitWalk tells it.
struct Visit {
  const Op *op;            ///< Null: a message.
  int64_t iteration;       ///< Of an op; -1 outside of repeats.
  const ProgramItem *item; ///< Of a message.
  unsigned slot;
};
} // namespace

/// Lists what one unit of a pair does, and makes the tasks of a part of it at a time.
class ClassTasks::PairedWalk : public UnitWalk {
public:
  PairedWalk(ClassTasks &lowering, unsigned number, Sink sink)
      : unit(lowering.units[number]), maker(lowering, number, sink) {
    walk(unit.layout->getItems());
  }

  /// The tasks before a position in the unit that have not been made.
  void makeUpTo(uint64_t position) {
    maker.enter();
    while (maker.getPosition() < position) {
      const Visit &visit = visits[next++];
      if (visit.op)
        maker.make(*visit.op, visit.iteration);
      else
        maker.make(*visit.item, visit.slot);
    }
  }

private:
  void visitOp(const Op &op) override {
    visits.push_back({&op, getIteration() ? int64_t(*getIteration()) : -1, nullptr, 0});
  }
  void visitReceive(const ProgramItem &item, unsigned slot, IterationValue) override {
    visits.push_back({nullptr, -1, &item, slot});
  }
  void visitSend(const ProgramItem &item, unsigned slot, IterationValue) override {
    visits.push_back({nullptr, -1, &item, slot});
  }

  const PlacedUnit &unit;
  TaskMaker maker;
  std::vector<Visit> visits;
  size_t next = 0;
};

void ClassTasks::makePair(unsigned number, Sink sink) {
  bool isReported = false;
  auto check = [&](const Task &task) {
    auto isLater = [&](llvm::ArrayRef<uint64_t> ids) {
      return llvm::any_of(ids, [&](uint64_t id) { return id >= task.id && id < firstName; });
    };
    if ((isLater(task.data) || isLater(task.order)) && !std::exchange(isReported, true))
      diags.report(graph.pipeline.loc, diag::OverlapWaits) << units[number].getName() << units[number + 1].getName();
    sink(task);
  };
  PairedWalk walks[] = {{*this, number, check}, {*this, number + 1, check}};
  for (const PairOrder::Turn &turn : units[number].pair->getTurns())
    walks[turn.unit].makeUpTo(turn.end);
}

llvm::SmallVector<std::optional<uint64_t>, 12> ClassTasks::listEnds(unsigned number) const {
  llvm::SmallVector<std::optional<uint64_t>, 12> ends(chains.begin(), chains.end());
  for (size_t each = number; each < getPairEnd(stage.units, number); ++each)
    ends.append({getPosted(unsigned(each)), getLoad(units[each]), getWorkBefore(unsigned(each)), workBeforeLoop});
  return ends;
}

void ClassTasks::nameEnds(unsigned number) {
  endsOfNames = listEnds(number);
  for (unsigned stream = 0; stream < chains.size(); ++stream)
    chains[stream] = firstName + stream;
  workBeforeLoop = firstName + getNumber(End::WorkBeforeLoop);
  additions.forgetAsked();
}

/// Notes what the unit has left behind, and goes on with ids.
void ClassTasks::replaceNames() {
  left = {chains, workBeforeLoop, additions.wasAsked()};
  auto replace = [&](std::optional<uint64_t> &id) {
    if (id && *id >= firstName)
      id = endsOfNames[*id - firstName];
  };
  llvm::for_each(chains, replace);
  replace(workBeforeLoop);
  endsOfNames.clear();
}

void ClassTasks::endUnit(unsigned number) {
  if (!endsOfNames.empty())
    replaceNames();
  lastCompOfUnit.push_back(chains[computation]);
  arrived.clear();
  if (isBackward(units[number].kind) || units[number].kind == PhaseKind::Reduce)
    additions.endUnit(units[number]);
  if (number + 1 < units.size() && units[number + 1].step != units[number].step)
    additions.startStep();
}

llvm::ArrayRef<uint64_t> ClassTasks::getNumCollectives(const PlacedUnit &unit) {
  auto [known, isNew] = numCollectives.try_emplace(unit.layout);
  std::vector<uint64_t> &counts = known->second;
  if (!isNew)
    return counts;
  counts.resize(numIssued.size());
  forEachOp(unit.layout->getItems(), [&](const Op &op, int64_t times) {
    if (isCommunication(op.kind))
      counts[getGroupKind(op)] += times;
  });
  return counts;
}

void ClassTasks::skipUnit(unsigned number, const Chains &after) {
  for (auto [issued, more] : llvm::zip(numIssued, getNumCollectives(units[number])))
    issued += more;
  chains = after;
  if (isBackward(units[number].kind) || units[number].kind == PhaseKind::Reduce)
    additions.skipUnit(graph, units[number]);
  endUnit(number);
}

void ClassTasks::forgetUnits() {
  units.clear();
  arrivals.reset();
  unitsOfLayout = {};
  lastCompOfUnit = {};
}

llvm::SmallVector<const PlacedUnit *, 2> ClassTasks::getLatestBackwards() const {
  llvm::SmallVector<const PlacedUnit *, 2> latest;
  for (const TaskLayout &layout : layouts)
    if (const PlacedUnit *unit = additions.getLatest(&layout))
      latest.push_back(unit);
  llvm::sort(latest, [](const PlacedUnit *a, const PlacedUnit *b) {
    return std::pair(a->base, a->placeInPair) > std::pair(b->base, b->placeInPair);
  });
  return latest;
}
