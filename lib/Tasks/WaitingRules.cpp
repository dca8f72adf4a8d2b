//===- WaitingRules.cpp - what each task waits for ------------------------===//
//
// Rules W1 to W8 of stage/Tasks/ClassTasks.h. Each task is made here with what it says and what it waits for; messages
// of caches are made in CacheMessages.cpp.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Tasks/ClassTasks.h"

using namespace stage;

std::optional<uint64_t> ClassTasks::getLoad(const PlacedUnit &unit) const {
  if (!unit.loader)
    return std::nullopt;
  const PlacedUnit &loader = units[*unit.loader];
  return loader.getId(loader.layout->getFirstWork()->first);
}

/// What a node that reads an input of the unit waits for, if its own chain does not go through there.
std::optional<uint64_t> ClassTasks::getOtherChainsLoad(const PlacedUnit &unit, unsigned stream) const {
  return !unit.loader || getStreamOfLoad(unit) == stream ? std::nullopt : getEnd(End::Load, unit, getLoad(unit));
}

std::optional<unsigned> ClassTasks::getStreamOfLoad(const PlacedUnit &unit) const {
  if (!unit.loader)
    return std::nullopt;
  return getStream(*units[*unit.loader].layout->getFirstWork()->second);
}

/// What is made beside other work for a collective alone waits until it is that one's turn on its stream: it would lie
/// there until then.
std::optional<uint64_t> ClassTasks::getTurnOfReader(const Op &op) const {
  if (op.kind != OpKind::Compute || getStream(op) == computation || op.getResult()->getUses().size() != 1)
    return std::nullopt;
  const Op &reader = *op.getResult()->getUses().front().first;
  return isCollective(reader.kind) ? chains[getStream(reader)] : std::nullopt;
}

llvm::SmallVector<const PlacedUnit *, 1> ClassTasks::getLoaded(unsigned number) const {
  llvm::SmallVector<const PlacedUnit *, 1> loaded;
  // The units of a pair are loaded before it.
  for (size_t next = getPairEnd(stage.units, getPairBegin(stage.units, number));
       next < units.size() && units[next].loader == number; ++next)
    loaded.push_back(&units[next]);
  return loaded;
}

/// It waits for something of an earlier iteration, so that in the first ones nothing of the repeat is before it.
static bool isAhead(const Op &op) {
  return llvm::any_of(op.after, [](const OrderEdge &edge) { return edge.iterations != 0; });
}

void ClassTasks::makeOp(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration, uint64_t id,
                        const std::string &suffix, Sink sink) {
  const OpFacts &f = getFacts(op);
  Task task = f.fields;
  task.id = id;
  data.clear();
  bool readsInput = false;
  for (const Value *operand : op.getOperands())
    readsInput |= producers.find(operand, unit, iteration, data);
  // An op may add to one buffer twice, of a parameter that it takes twice: it waits for those before it alone.
  for (const Value *buffer : f.additions)
    additions.findLast(buffer, iteration, unit, data);
  for (const Value *buffer : f.additions)
    additions.add(buffer, unit);
  std::string name = makeName(f, iteration, suffix);
  task.name = name;
  std::optional<uint64_t> &last = chains[f.stream];
  findEdges(op, unit, number, iteration);
  // What is copied of a cache is what has been computed before.
  bool waitsForWork = (op.kind == OpKind::Fetch || isCacheCopy(op.kind) || isGatherOfState(op)) && after.empty();
  if (f.stream == computation)
    after.append(std::exchange(arrived, {}));
  finish(task, {last, readsInput ? getOtherChainsLoad(unit, f.stream) : std::nullopt,
                waitsForWork            ? (isAhead(op) ? workBeforeLoop : chains[computation])
                : isGatherOfMessage(op) ? chains[computation]
                : op.waitsForUnits      ? getEnd(End::WorkBefore, unit, getWorkBefore(number))
                                        : getTurnOfReader(op)});
  last = id;
  if (isGatherOfMessage(op))
    arrived.push_back(id);
  if (task.kind == TaskKind::Collective)
    task.tag = numIssued[f.groupKind]++;
  if (observer) {
    bool isFirst = id == unit.getId(unit.layout->getFirstWork()->first);
    observer->observeOp(op, unit, iteration, task,
                        isFirst ? getLoaded(number) : llvm::SmallVector<const PlacedUnit *, 1>());
  }
  sink(task);
}

void ClassTasks::makeMessage(const PlacedUnit &unit, unsigned number, const ProgramItem &item, unsigned index,
                             uint64_t id, const std::string &suffix, Sink sink) {
  if (item.channel && item.channel->isOfCache())
    return makeCacheMessage(unit, item, index, id, suffix, sink);
  bool isSend = item.kind == ProgramItem::Kind::Send;
  const Value *value = item.values[index];
  Task task;
  task.kind = isSend ? TaskKind::Send : TaskKind::Receive;
  task.id = id;
  unsigned stream = getStream(graph.getMessageStream(), StreamKind::Communication);
  task.stream = getNumber(stream);
  if (const Channel *channel = item.channel) {
    task.bytes = std::max<uint64_t>(1, channel->bytes); // as getMessageBytes
    task.tag = getTag(*channel, unit);
    RankSlot::Kind kind = isSend ? RankSlot::Kind::Receiver : RankSlot::Kind::Sender;
    task.peer = TaskValue::slot(getSlot({kind, 0, 0, 0, index, channel->exchange.get()}));
  } else {
    task.bytes = getMessageBytes(*value);
    unsigned here = getVirtualStage(unit);
    task.tag = isSend ? getTag(unit, here, item.peer, index) : getTag(unit, item.peer, here, index);
    task.peer = TaskValue::slot(getSlot({RankSlot::Kind::Stage, 0, program.virtualStages[item.peer].first}));
  }
  std::string name;
  if (options.names) {
    name = (isSend ? "send " : "recv ") + value->path + suffix;
    task.name = name;
    task.opType = isSend ? "send" : "recv";
  }
  data.clear();
  after.clear();
  int64_t iteration = -1;
  if (isSend) {
    iteration = unit.layout->getSentIteration(value);
    bool readsInput = producers.find(value, unit, iteration, data);
    finish(task, {chains[stream], graph.pipeline.send == MessageMode::Early ? std::nullopt : chains[computation],
                  readsInput ? getOtherChainsLoad(unit, stream) : std::nullopt});
    chains[stream] = id;
  } else {
    finish(task, {getEnd(End::Posted, unit, getPosted(number))});
    arrived.push_back(id);
  }
  if (observer)
    observer->observeMessage(value, unit, iteration, task);
  sink(task);
}

/// Until a message can leave its value must be there: the wait behind its send begins when the send can.
void ClassTasks::makeWait(const PlacedUnit &unit, const ProgramItem &item, unsigned index, uint64_t id,
                          const std::string &suffix, Sink sink) {
  const Value *value = item.values[index];
  Task task;
  task.isWait = true;
  task.id = id;
  task.bytes = getMessageBytes(*value);
  task.peer = TaskValue::slot(getSlot({RankSlot::Kind::Stage, 0, program.virtualStages[item.peer].first}));
  std::string name;
  if (options.names) {
    name = "wait " + value->path + suffix;
    task.name = name;
    task.opType = "wait";
  }
  data.clear(); // it reads nothing
  after = std::exchange(arrived, {});
  int64_t iteration = unit.layout->getSentIteration(value);
  producers.find(value, unit, iteration, after);
  finish(task, {chains[computation]});
  chains[computation] = id;
  if (observer)
    observer->observeMessage(value, unit, iteration, task);
  sink(task);
}

TaskValue ClassTasks::getMessageBytes(const Value &value) {
  Size bytes = getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding);
  return makeNumber(bytes, 1, nullptr, &value); // 1 stands for none, which no reader takes
}

/// The units of a template that are before one.
llvm::ArrayRef<unsigned> ClassTasks::getUnitsBefore(unsigned layout, unsigned number) const {
  llvm::ArrayRef<unsigned> all = unitsOfLayout[layout];
  return all.take_front(llvm::lower_bound(all, number) - all.begin());
}

/// The templates and distances of the edges of a template that lead to earlier units; nothing if several templates run
/// what one of them leads to.
const std::optional<ClassTasks::UnitEdges> &ClassTasks::getUnitEdges(const TaskLayout &layout) {
  auto [known, isNew] = unitEdges.try_emplace(&layout, UnitEdges());
  if (!isNew)
    return known->second;
  std::optional<UnitEdges> &edges = known->second;
  for (const Segment &segment : layout.getSegments())
    for (const std::vector<Op *> &ops : segment.ops)
      for (const Op *op : ops)
        for (const OrderEdge &edge : op->after) {
          auto runs = [&](const TaskLayout &other) { return other.hasNode(*edge.value->getOp()); };
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

std::optional<llvm::SmallVector<const PlacedUnit *, 1>> ClassTasks::getAwaitedUnits(unsigned number) {
  llvm::SmallVector<const PlacedUnit *, 1> awaited;
  const std::optional<UnitEdges> &edges = getUnitEdges(*units[number].layout);
  if (!edges)
    return std::nullopt;
  for (auto [layout, distance] : *edges) {
    llvm::ArrayRef<unsigned> before = getUnitsBefore(layout, number);
    awaited.push_back(distance > before.size() ? nullptr : &units[before[before.size() - distance]]);
  }
  return awaited;
}

/// The unit so many before this one that runs an op (of a repeat: in this iteration); null if there are fewer.
const PlacedUnit *ClassTasks::findEarlierUnit(const Op &maker, unsigned number, int64_t iteration,
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
void ClassTasks::findEdges(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration) {
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
void ClassTasks::makePermute(const Op &op, const PlacedUnit &unit, unsigned number, bool isSend, int64_t iteration,
                             uint64_t id, const std::string &suffix, Sink sink) {
  const OpFacts &f = getFacts(op);
  Task task = f.fields;
  task.kind = isSend ? TaskKind::Send : TaskKind::Receive;
  task.id = id;
  task.tag = numIssued[f.groupKind];
  AxisId axis = op.axes.front();
  int64_t shift = isSend ? op.shift : graph.mesh[axis].size - op.shift;
  task.peer = TaskValue::slot(getSlot({RankSlot::Kind::Neighbour, 0, 0, axis, shift}));
  std::string name = makeName(f, iteration, suffix);
  task.name = name;
  data.clear();
  const Value *moved = isSend ? op.getOperand(0) : op.getResult();
  task.bytes = getMessageBytes(*moved);
  bool readsInput = isSend && producers.find(moved, unit, iteration, data);
  findEdges(op, unit, number, iteration);
  finish(task, {chains[f.stream], readsInput ? getOtherChainsLoad(unit, f.stream) : std::nullopt});
  if (isSend) {
    chains[f.stream] = id;
    ++numIssued[f.groupKind];
  }
  if (observer)
    observer->observeMessage(moved, unit, iteration, task);
  sink(task);
}

/// Sorts the data dependencies and adds those that carry the order.
void ClassTasks::finish(Task &task, llvm::ArrayRef<std::optional<uint64_t>> order) {
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
  task.data = llvm::ArrayRef<uint64_t>(data);
  task.order = llvm::ArrayRef<uint64_t>(control);
}
