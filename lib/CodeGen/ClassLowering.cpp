//===- ClassLowering.cpp - the nodes of a class of ranks ------------------===//
#include "NodeWalk.h"
#include "stage/CodeGen/Diagnostics.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"

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

ClassLowering::ClassLowering(const Program &program, const GroupTable &groups, const EmitOptions &options,
                             const RankClass &rankClass, DiagnosticEngine &diags)
    : program(program), graph(*program.graph), groups(groups), options(options), diags(diags),
      own(makeOwn(program, rankClass, options.steps)), stage(own ? *own : program.stages[rankClass.stage]),
      binding(graph.binding), sizes(binding, diags), additions(program.buffers), producers(graph, stage, additions),
      slowness(rankClass.slowness), numIssued(groups.getNumKinds() + 2), chains(firstDeclared + graph.streams.size()) {
  for (auto [axis, coordinate] : rankClass.coordinates)
    coordinates.bind(getCoordinateSymbol(graph.sizes, graph.mesh[axis]).getSymbol(), coordinate);
  binding.bind(coordinates);
  measured = binding;
  select(0);
  for (const StageProgram &any : program.stages) // sender and receiver count alike
    for (const UnitTemplate &unit : any.templates)
      for (const ProgramItem &item : unit.items)
        maxValues = std::max<uint64_t>(maxValues, item.values.size());
  placeUnits();
  for (const NodeLayout &layout : layouts)
    additions.addLayout(graph, layout);
  for (const PlacedUnit &unit : units)
    numPermutes += getNumCollectives(unit).back();
  numIssued.back() = getNumTags();
  if (options.names)
    names.emplace(graph);
  if (options.tracker)
    tracker.emplace(program, stage, coordinates, producers, sizes, diags);
}

void ClassLowering::select(unsigned number) {
  environment = graph.pipeline.environments.getAlike(number);
  bound = number;
  graph.select(binding, number);
}

void ClassLowering::placeUnits() {
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

std::optional<uint64_t> ClassLowering::getLoad(const PlacedUnit &unit) const {
  if (!unit.loader)
    return std::nullopt;
  const PlacedUnit &loader = units[*unit.loader];
  return loader.base + loader.layout->getFirstWork()->first;
}

/// What a node that reads an input of the unit waits for, if its own chain does not go through there.
std::optional<uint64_t> ClassLowering::getOtherChainsLoad(const PlacedUnit &unit, unsigned stream) const {
  return getStreamOfLoad(unit) == stream ? std::nullopt : getLoad(unit);
}

std::optional<unsigned> ClassLowering::getStreamOfLoad(const PlacedUnit &unit) const {
  if (!unit.loader)
    return std::nullopt;
  return getStream(*units[*unit.loader].layout->getFirstWork()->second);
}

/// What is made beside other work for a collective alone waits until it is that one's turn on its stream: it would lie
/// there until then.
std::optional<uint64_t> ClassLowering::getTurnOfReader(const Op &op) const {
  if (op.kind != OpKind::Compute || getStream(op) == computation || op.getResult()->getUses().size() != 1)
    return std::nullopt;
  const Op &reader = *op.getResult()->getUses().front().first;
  return isCollective(reader.kind) ? chains[getStream(reader)] : std::nullopt;
}

llvm::SmallVector<const PlacedUnit *, 1> ClassLowering::getLoaded(unsigned number) const {
  llvm::SmallVector<const PlacedUnit *, 1> loaded;
  for (unsigned next = number + 1; next < units.size() && units[next].loader == number; ++next)
    loaded.push_back(&units[next]);
  return loaded;
}

unsigned ClassLowering::getVirtualStage(const PlacedUnit &unit) const {
  auto found = llvm::find(program.virtualStages, std::pair(stage.stage, unit.chunk.value_or(0)));
  return found - program.virtualStages.begin();
}

llvm::SmallVector<uint64_t, 4> ClassLowering::getTags(const PlacedUnit &unit) const {
  llvm::SmallVector<uint64_t, 4> tags;
  for (const Segment &segment : unit.layout->getSegments()) {
    const ProgramItem &item = *segment.item;
    if (item.values.empty() || item.isLocal)
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
uint64_t ClassLowering::getTag(const PlacedUnit &unit, unsigned from, unsigned to, unsigned value) const {
  uint64_t direction = isBackward(unit.kind), boundary = std::min(from, to);
  return ((direction * program.virtualStages.size() + boundary) * getNumMicrobatches() + unit.microbatch) * maxValues +
         value;
}

/// Between ranks of two parts there are no other messages than those of channels.
uint64_t ClassLowering::getTag(const Channel &channel, const PlacedUnit &unit) const {
  return uint64_t(channel.number) * getNumMicrobatches() + unit.microbatch;
}

uint64_t ClassLowering::getNumTags() const {
  return 2 * program.virtualStages.size() * getNumMicrobatches() * maxValues;
}

bool ClassLowering::checkTags() const {
  if (hasEnoughTags())
    return true;
  diags.report(graph.pipeline.loc, diag::TooManyTags) << int64_t(getNumTags() + numPermutes) << int64_t(maxTags);
  return false;
}

unsigned ClassLowering::getSlot(const RankSlot &slot) {
  auto [known, isNew] =
      slotNumbers.try_emplace({unsigned(slot.kind), slot.groupKind, slot.stage, slot.axis, slot.shift, slot.exchange,
                               slot.batch, slot.size ? slot.size.getNode() : nullptr, slot.least, slot.environment},
                              slots.size());
  if (isNew)
    slots.push_back(slot);
  return known->second;
}

NodeValue ClassLowering::makeNumber(Size size, uint64_t least, const Op *op, const Value *value) {
  bool isSlot = false;
  for (AxisId axis : toList(getCoordinateAxes(graph.mesh, size)))
    isSlot |= !binding.lookup(getCoordinateSymbol(graph.sizes, graph.mesh[axis]).getSymbol());
  if (!isSlot)
    return std::max(least, op ? sizes.evaluate(size, *op) : sizes.evaluate(size, *value));
  RankSlot slot{RankSlot::Kind::Size};
  slot.size = size;
  slot.least = least;
  slot.op = op;
  slot.value = value;
  slot.environment = environment;
  return NodeValue::slot(getSlot(slot));
}

//===----------------------------------------------------------------------===//
// Numbers of an op
//===----------------------------------------------------------------------===//

const ClassLowering::OpNumbers &ClassLowering::getNumbers(const Op &op) {
  auto [it, isNew] = numbers.try_emplace(&op);
  OpNumbers &n = it->second;
  if (!isNew)
    return n;
  OpCost cost = getLocalCost(graph, op);
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
  return n;
}

const ClassLowering::OpFacts &ClassLowering::getFacts(const Op &op) {
  const OpNumbers &n = getNumbers(op);
  auto [it, fresh] = facts.try_emplace({&op, n.varies ? environment : 0});
  if (!fresh)
    return *it->second;
  it->second = std::make_unique<OpFacts>();
  OpFacts &f = *it->second;
  if (isCollective(op.kind)) {
    f.fields.type = ChakraNodeType::CommColl;
    f.fields.commType = op.kind == OpKind::AllGather       ? ChakraCommType::AllGather
                        : op.kind == OpKind::AllReduce     ? ChakraCommType::AllReduce
                        : op.kind == OpKind::ReduceScatter ? ChakraCommType::ReduceScatter
                                                           : ChakraCommType::AllToAll;
    if (std::optional<unsigned> kind = groups.find(op, stage.stage))
      f.fields.group = NodeValue::slot(getSlot({RankSlot::Kind::Group, *kind}));
    f.networkDims.resize(graph.mesh.getNumNetworkDims());
    for (AxisId axis : op.axes)
      if (!f.networkDims.empty() && graph.mesh[axis].size > 1)
        f.networkDims[*graph.mesh[axis].networkDim] = 1;
    f.fields.networkDims = f.networkDims;
  } else if (isCopy(op.kind)) {
    f.fields.type =
        op.kind == OpKind::Fetch || op.kind == OpKind::Load ? ChakraNodeType::MemLoad : ChakraNodeType::MemStore;
  } else {
    f.fields.isCpuOp = runsOnHost(op);
  }
  if (isCollective(op.kind) || op.kind == OpKind::Permute)
    f.groupKind = getGroupKind(op);
  if (n.commSize)
    f.fields.commSize = makeNumber(n.commSize, 1, &op, nullptr);
  if (n.numOps)
    f.fields.numOps = makeNumber(n.numOps, 1, &op, nullptr);
  if (n.otherOps)
    f.fields.otherOps = makeNumber(n.otherOps, 0, &op, nullptr);
  if (n.recomputedOps)
    f.fields.recomputedOps = makeNumber(n.recomputedOps, 0, &op, nullptr);
  if (n.tensorSize)
    f.fields.tensorSize = makeNumber(n.tensorSize, 1, &op, nullptr);
  f.stream = getStream(op);
  f.fields.stream = getNumber(f.stream);
  if (options.names) {
    f.name = names->get(op);
    f.fields.opType = f.name.opType;
  }
  return f;
}

const std::optional<std::vector<unsigned>> &ClassLowering::getWidths(const PlacedUnit &unit) {
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

void ClassLowering::lowerUnit(unsigned number, Sink sink) {
  NodeWalk(*this, number, sink).run();
  endUnit(number);
}

void ClassLowering::endUnit(unsigned number) {
  lastCompOfUnit.push_back(chains[computation]);
  arrived.clear();
  if (isBackward(units[number].kind) || units[number].kind == PhaseKind::Reduce)
    additions.endUnit(units[number]);
  if (number + 1 < units.size() && units[number + 1].step != units[number].step)
    additions.startStep();
}

llvm::ArrayRef<uint64_t> ClassLowering::getNumCollectives(const PlacedUnit &unit) {
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

void ClassLowering::skipUnit(unsigned number, const Chains &after) {
  for (auto [issued, more] : llvm::zip(numIssued, getNumCollectives(units[number])))
    issued += more;
  chains = after;
  endUnit(number);
}

llvm::SmallVector<ClassLowering::NodeRange, 2> ClassLowering::getLatestBackwards() const {
  llvm::SmallVector<NodeRange, 2> latest;
  for (unsigned i = 0; i < layouts.size(); ++i)
    if (std::optional<uint64_t> first = additions.getLatest(&layouts[i]))
      latest.push_back({i, *first, layouts[i].getNumNodes()});
  llvm::sort(latest, [](const NodeRange &a, const NodeRange &b) { return a.first > b.first; });
  return latest;
}

/// It waits for something of an earlier iteration, so that in the first ones nothing of the repeat is before it.
static bool isAhead(const Op &op) {
  return llvm::any_of(op.after, [](const OrderEdge &edge) { return edge.iterations != 0; });
}

void ClassLowering::lowerOp(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration, uint64_t id,
                            const std::string &suffix, Sink sink) {
  const OpFacts &f = getFacts(op);
  NodeFields node = f.fields;
  node.id = id;
  data.clear();
  bool readsInput = false;
  for (const Value *operand : op.getOperands())
    readsInput |= producers.find(operand, unit, iteration, data);
  // An op may add to one buffer twice, of a parameter that it takes twice: it waits for those before it alone.
  forEachAddition(graph, op, [&](const Value *buffer) { additions.findLast(buffer, iteration, unit, data); });
  forEachAddition(graph, op, [&](const Value *buffer) { additions.add(buffer, unit); });
  std::string name = makeName(f, iteration, suffix);
  node.name = name;
  std::optional<uint64_t> &last = chains[f.stream];
  findEdges(op, unit, number, iteration);
  // What is copied of a cache is what has been computed before.
  bool waitsForWork = (op.kind == OpKind::Fetch || isCacheCopy(op.kind) || isGatherOfState(op)) && after.empty();
  if (f.stream == computation)
    after.append(std::exchange(arrived, {}));
  finishNode(node, {last, readsInput ? getOtherChainsLoad(unit, f.stream) : std::nullopt,
                    waitsForWork                 ? (isAhead(op) ? workBeforeLoop : chains[computation])
                    : op.waitsForUnits && number ? lastCompOfUnit[number - 1]
                                                 : getTurnOfReader(op)});
  last = id;
  if (node.type == ChakraNodeType::CommColl)
    node.collectiveTag = numIssued[f.groupKind]++;
  if (tracker) {
    tracker->trackOp(op, unit, iteration, node);
    if (id == unit.base + unit.layout->getFirstWork()->first)
      for (const PlacedUnit *next : getLoaded(number))
        tracker->loadInputs(*next, node);
    if (isLast(id))
      tracker->holdStatic(node);
  }
  sink(node);
}

void ClassLowering::lowerMessage(const PlacedUnit &unit, unsigned number, const ProgramItem &item, unsigned index,
                                 uint64_t id, const std::string &suffix, Sink sink) {
  if (item.channel && item.channel->isOfCache())
    return lowerCacheMessage(unit, item, index, id, suffix, sink);
  bool isSend = item.kind == ProgramItem::Kind::Send;
  const Value *value = item.values[index];
  NodeFields node;
  node.type = isSend ? ChakraNodeType::CommSend : ChakraNodeType::CommRecv;
  node.id = id;
  unsigned stream = getStream(graph.getMessageStream(), StreamKind::Communication);
  node.stream = getNumber(stream);
  if (const Channel *channel = item.channel) {
    node.commSize = std::max<uint64_t>(1, channel->bytes); // as getMessageBytes
    node.tag = getTag(*channel, unit);
    RankSlot::Kind kind = isSend ? RankSlot::Kind::Receiver : RankSlot::Kind::Sender;
    node.peer = NodeValue::slot(getSlot({kind, 0, 0, 0, index, channel->exchange.get()}));
  } else {
    node.commSize = getMessageBytes(*value);
    unsigned here = getVirtualStage(unit);
    node.tag = isSend ? getTag(unit, here, item.peer, index) : getTag(unit, item.peer, here, index);
    node.peer = NodeValue::slot(getSlot({RankSlot::Kind::Stage, 0, program.virtualStages[item.peer].first}));
  }
  std::string name;
  if (options.names) {
    name = (isSend ? "send " : "recv ") + value->path + suffix;
    node.name = name;
    node.opType = isSend ? "send" : "recv";
  }
  data.clear();
  after.clear();
  int64_t iteration = -1;
  if (isSend) {
    iteration = unit.layout->getSentIteration(value);
    bool readsInput = producers.find(value, unit, iteration, data);
    finishNode(node, {chains[stream], graph.pipeline.sendsEarly ? std::nullopt : chains[computation],
                      readsInput ? getOtherChainsLoad(unit, stream) : std::nullopt});
    chains[stream] = id;
  } else {
    finishNode(node, {getPosted(number)});
    arrived.push_back(id);
  }
  if (tracker) {
    tracker->trackMessage(value, unit, iteration, node);
    if (isLast(id))
      tracker->holdStatic(node);
  }
  sink(node);
}

NodeValue ClassLowering::getMessageBytes(const Value &value) {
  Size bytes = getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding);
  return makeNumber(bytes, 1, nullptr, &value); // 1 stands for none, which no reader takes
}

/// The units of a template that are before one.
llvm::ArrayRef<unsigned> ClassLowering::getUnitsBefore(unsigned layout, unsigned number) const {
  llvm::ArrayRef<unsigned> all = unitsOfLayout[layout];
  return all.take_front(llvm::lower_bound(all, number) - all.begin());
}

/// The templates and distances of the edges of a template that lead to earlier units; nothing if several templates run
/// what one of them leads to.
const std::optional<ClassLowering::UnitEdges> &ClassLowering::getUnitEdges(const NodeLayout &layout) {
  auto [known, isNew] = unitEdges.try_emplace(&layout, UnitEdges());
  if (!isNew)
    return known->second;
  std::optional<UnitEdges> &edges = known->second;
  for (const Segment &segment : layout.getSegments())
    for (const std::vector<Op *> &ops : segment.ops)
      for (const Op *op : ops)
        for (const OrderEdge &edge : op->after) {
          auto runs = [&](const NodeLayout &other) { return other.hasNode(*edge.value->getOp()); };
          if (!edge.units || !edges)
            continue;
          std::pair<unsigned, unsigned> found(llvm::find_if(layouts, runs) - layouts.begin(), edge.units);
          if (size_t count = llvm::count_if(layouts, runs); count > 1)
            edges.reset();
          else if (count && !llvm::is_contained(*edges, found))
            edges->push_back(found);
        }
  return edges;
}

std::optional<llvm::SmallVector<std::optional<ClassLowering::NodeRange>, 1>>
ClassLowering::getAwaitedUnits(unsigned number) {
  llvm::SmallVector<std::optional<NodeRange>, 1> ranges;
  const std::optional<UnitEdges> &edges = getUnitEdges(*units[number].layout);
  if (!edges)
    return std::nullopt;
  for (auto [layout, distance] : *edges) {
    llvm::ArrayRef<unsigned> before = getUnitsBefore(layout, number);
    ranges.emplace_back();
    if (distance > before.size())
      continue;
    const PlacedUnit &unit = units[before[before.size() - distance]];
    ranges.back() = NodeRange{layout, unit.base, unit.layout->getNumNodes()};
  }
  return ranges;
}

/// The unit so many before this one that runs an op (of a repeat: in this iteration); null if there are fewer.
const PlacedUnit *ClassLowering::findEarlierUnit(const Op &maker, unsigned number, int64_t iteration,
                                                 unsigned distance) const {
  llvm::SmallVector<llvm::ArrayRef<unsigned>, 2> lists; // of the templates that run it, the units before this one
  for (unsigned i = 0; i < layouts.size(); ++i)
    if (layouts[i].findPosition(&maker, iteration))
      lists.push_back(getUnitsBefore(i, number));
  if (lists.size() == 1)
    return distance <= lists[0].size() ? &units[lists[0][lists[0].size() - distance]] : nullptr;
  for (;; --distance) {
    llvm::ArrayRef<unsigned> *latest = nullptr;
    for (llvm::ArrayRef<unsigned> &list : lists)
      if (!list.empty() && (!latest || list.back() > latest->back()))
        latest = &list;
    if (!latest || distance == 1)
      return latest ? &units[latest->back()] : nullptr;
    *latest = latest->drop_back();
  }
}

/// The nodes after which an op runs.
void ClassLowering::findEdges(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration) {
  after.clear();
  const Op *loop = op.getBlock()->getParent();
  for (const OrderEdge &edge : op.after) {
    const PlacedUnit *where = &unit;
    int64_t when = iteration;
    if (edge.iterations) {
      if (unit.layout->findLoop(loop->loop, iteration)->getNumBefore(iteration) < int64_t(edge.iterations))
        continue;
      when += loop->reverse ? int64_t(edge.iterations) : -int64_t(edge.iterations);
      if (&loop->getBody(when) != edge.value->getBlock())
        continue;
    }
    if (edge.units)
      where = findEarlierUnit(*edge.value->getOp(), number, iteration, edge.units);
    if (where)
      producers.find(edge.value, *where, when, after);
  }
}

/// A member's recv and send wait for what goes before the permute in the order of all ranks, and for nothing else:
/// where all have come so far, each recv is posted and each send is next.
void ClassLowering::lowerPermute(const Op &op, const PlacedUnit &unit, unsigned number, bool isSend, int64_t iteration,
                                 uint64_t id, const std::string &suffix, Sink sink) {
  const OpFacts &f = getFacts(op);
  NodeFields node = f.fields;
  node.type = isSend ? ChakraNodeType::CommSend : ChakraNodeType::CommRecv;
  node.id = id;
  node.tag = numIssued[f.groupKind];
  AxisId axis = op.axes.front();
  int64_t shift = isSend ? op.shift : graph.mesh[axis].size - op.shift;
  node.peer = NodeValue::slot(getSlot({RankSlot::Kind::Neighbour, 0, 0, axis, shift}));
  std::string name = makeName(f, iteration, suffix);
  node.name = name;
  data.clear();
  const Value *moved = isSend ? op.getOperand(0) : op.getResult();
  node.commSize = getMessageBytes(*moved);
  bool readsInput = isSend && producers.find(moved, unit, iteration, data);
  findEdges(op, unit, number, iteration);
  finishNode(node, {chains[f.stream], readsInput ? getOtherChainsLoad(unit, f.stream) : std::nullopt});
  if (isSend) {
    chains[f.stream] = id;
    ++numIssued[f.groupKind];
  }
  if (tracker) {
    tracker->trackMessage(moved, unit, iteration, node);
    if (isLast(id))
      tracker->holdStatic(node);
  }
  sink(node);
}

/// Sorts the data dependencies and adds those that carry the order.
void ClassLowering::finishNode(NodeFields &node, llvm::ArrayRef<std::optional<uint64_t>> order) {
  llvm::sort(data);
  data.erase(std::unique(data.begin(), data.end()), data.end());
  control.clear();
  auto add = [&](uint64_t before) {
    if (llvm::is_contained(data, before) || llvm::is_contained(control, before))
      return;
    llvm::SmallVectorImpl<uint64_t> &deps = options.orderAsData ? data : control;
    deps.insert(llvm::lower_bound(deps, before), before);
  };
  for (std::optional<uint64_t> before : order)
    if (before)
      add(*before);
  llvm::for_each(after, add);
  node.dataDeps = llvm::ArrayRef<uint64_t>(data);
  node.ctrlDeps = llvm::ArrayRef<uint64_t>(control);
}
