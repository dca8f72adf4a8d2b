//===- UnitRecorder.cpp - the tasks of one unit of each kind --------------===//
#include "UnitRecorder.h"
#include "MachinePricer.h"
#include "stage/Tasks/ShapeSizes.h"
#include "stage/Time/StepTime.h"

using namespace stage;

/// Copies stand in front of a unit that has some.
static bool hasTasks(const PackedUnit &unit, PhaseKind kind) {
  return (kind != PhaseKind::Store || !unit.stored.empty()) && (kind != PhaseKind::Load || !unit.loaded.empty());
}

UnitTimer::Recorder::Recorder(const TimedPart &used, DiagnosticEngine &diags)
    : part(used), program(*part.program), graph(*program.graph), machine(part.machine), diags(diags),
      hasCharges(hasSurcharges(part)), phases(program.graph->listForwardPhases()), ends(program.stages.size()),
      walk(part, options, *this, diags) {
  for (std::vector<UnitGraph> &ofStages : graphs)
    ofStages.resize(program.stages.size());
}

bool UnitTimer::Recorder::record() {
  if (!walk.run())
    return false;
  for (unsigned number = 0; number < walk.getNumClasses(); ++number) {
    values.emplace_back(walk.getTasks(number).getSlots().size());
    slowness.push_back(walk.getTasks(number).getSlowness());
  }
  if (hasCharges) {
    for (auto &ofKind : priceOfItems)
      ofKind.resize(walk.getNumClasses());
    surcharges.resize(walk.getNumClasses());
    more.resize(walk.getNumClasses());
    for (unsigned number = 0; number < walk.getNumClasses(); ++number)
      listItems(number);
    taken.clear();
  }
  return true;
}

void UnitTimer::Recorder::restart() {
  for (UnitSurcharges &each : surcharges)
    each.forget();
}

/// Keeps a task of a class, which come in the order of their ids.
void UnitTimer::Recorder::take(unsigned classNumber, const Task &task, const GroupPlace &place,
                               const WaitingTask &waiting) {
  if (!hasCharges)
    return;
  if (taken.size() <= classNumber)
    taken.resize(classNumber + 1);
  TimedTask timed;
  timed.kind = task.kind;
  timed.isKernel = task.kind == TaskKind::Compute && !task.runsOnHost;
  timed.isTaxed = timed.isKernel && task.stream == 0;
  timed.lane = task.kind == TaskKind::Receive ? 0 : ownLanes[prices[waiting.price].lane];
  timed.unit = waiting.unit;
  timed.level = place.getLevel();
  taken[classNumber].push_back({timed, waiting.price, {waiting.awaited.begin(), waiting.awaited.end()}});
}

/// Makes lists of the tasks of a unit of each kind, and lets nodes say which of these they are.
void UnitTimer::Recorder::listItems(unsigned classNumber) {
  std::vector<unsigned> places(taken[classNumber].size());
  for (uint64_t id = 0; id < taken[classNumber].size(); ++id) {
    const Taken &each = taken[classNumber][id];
    if (!isKept(classNumber, each.task.unit))
      continue;
    bool decodes = isDecode(classNumber, each.task.unit);
    uint64_t microbatch = getUnit(classNumber, each.task.unit).microbatch;
    UnitSurcharges::Item item{each.task, getUnit(classNumber, each.task.unit).kind, {}, {}};
    for (uint64_t awaited : each.awaited) {
      const TimedTask &earlier = taken[classNumber][awaited].task;
      if (getUnit(classNumber, earlier.unit).microbatch == microbatch)
        item.earlier.push_back(places[awaited]);
      else if (earlier.kind != TaskKind::Receive)
        item.lanes.push_back(earlier.lane);
    }
    places[id] = unsigned(surcharges[classNumber].getItems(decodes).size());
    surcharges[classNumber].add(decodes, std::move(item));
    priceOfItems[decodes][classNumber].push_back(each.price);
  }
  for (std::vector<UnitGraph> &ofStages : graphs)
    for (UnitGraph &graph : ofStages)
      for (auto &[owner, task] : graph.tasks)
        if (owner == classNumber)
          task = places[task];
}

/// Copies of caches are units of their own, with the microbatch of the unit behind them.
bool UnitTimer::Recorder::isDecode(unsigned classNumber, unsigned unit) const {
  return phases[getUnit(classNumber, unit).microbatch] == PhaseKind::Decode;
}

bool UnitTimer::Recorder::price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) {
  auto [stream, kind] = StepWalk::getLaneKey(task);
  auto [known, isNewLane] = laneNumbers.try_emplace({classNumber, stream, kind}, unsigned(laneNumbers.size()));
  unsigned lane = known->second;
  if (isNewLane) {
    numLanes.resize(std::max<size_t>(numLanes.size(), classNumber + 1));
    ownLanes.push_back(numLanes[classNumber]++);
  }
  laneOf[{classNumber, task.id}] = lane;
  auto encode = [](TaskValue value) { return value.isSlot() ? uint64_t(value.getSlot()) : value.resolve({}); };
  bool hasWork = task.work != nullptr; // which follows from the op
  std::vector<uint64_t> key = {
      waiting.unit,        lane,
      uint64_t(task.kind), hasWork || !task.op ? reinterpret_cast<uintptr_t>(task.op) : uint64_t(task.op->kind),
      task.isWait,         task.bytes.isSlot(),
      encode(task.bytes),  uint64_t(place.getNumMembers())};
  for (unsigned level = 1; level <= place.getLevel(); ++level)
    key.insert(key.end(), {uint64_t(place.getShare(level).blocks), uint64_t(place.getShare(level).least)});
  auto [number, isNew] = priceNumbers.try_emplace(std::move(key), unsigned(prices.size()));
  if (isNew) {
    Task kept;
    kept.kind = task.kind;
    kept.op = task.op;
    kept.runsOnHost = task.runsOnHost;
    kept.isWait = task.isWait;
    kept.bytes = task.bytes;
    prices.push_back({kept, place, classNumber, lane, waiting.unit});
    if (hasWork)
      prices.back().cost = getLocalCost(graph, *task.op);
  }
  waiting.price = number->second;
  take(classNumber, task, place, waiting);
  return true;
}

void UnitTimer::Recorder::takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                                      const WaitingTask &waiting) {
  take(classNumber, task, place, waiting);
}

/// Null for the first unit of each kind, behind which there is not one of each.
UnitTimer::Recorder::UnitGraph *UnitTimer::Recorder::findGraph(unsigned classNumber, const WaitingTask &task) {
  return isKept(classNumber, task.unit) ? &graphs[isDecode(classNumber, task.unit)][getStage(classNumber)] : nullptr;
}

/// The next node waits for what a task waits for.
void UnitTimer::Recorder::wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph) {
  uint64_t microbatch = getUnit(classNumber, task.unit).microbatch;
  for (uint64_t id : task.awaited)
    if (auto place = places.find({classNumber, id}); place != places.end() && place->second.microbatch == microbatch)
      graph.earlier.push_back(place->second.node);
    else if (auto lane = laneOf.find({classNumber, id});
             lane != laneOf.end()) // a message is there when the unit begins
      graph.lanes.push_back(lane->second);
}

/// The next node is what has been listed.
UnitTimer::Recorder::Node &UnitTimer::Recorder::addNode(unsigned classNumber, const WaitingTask &task,
                                                        UnitGraph &graph) {
  return graph.nodes.emplace_back(Node{unsigned(graph.earlier.size()), unsigned(graph.lanes.size()),
                                       unsigned(graph.prices.size()), getUnit(classNumber, task.unit).kind});
}

void UnitTimer::Recorder::end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) {
  for (unsigned stage = 0; stage < program.stages.size(); ++stage) {
    UnitGraph *own = nullptr;
    std::pair<unsigned, const WaitingTask *> last;
    for (auto [classNumber, task] : members) {
      UnitGraph *graph = getStage(classNumber) == stage ? findGraph(classNumber, *task) : nullptr;
      if (!graph)
        continue;
      own = graph;
      last = {classNumber, task};
      wait(classNumber, *task, *graph);
      graph->prices.push_back(task->price);
      graph->tasks.emplace_back(classNumber, task->id);
      places[{classNumber, task->id}] = {stage, unsigned(graph->nodes.size()),
                                         getUnit(classNumber, task->unit).microbatch};
    }
    if (own)
      addNode(last.first, *last.second, *own).isSend =
          last.second->kind == TaskKind::Send && !prices[last.second->price].task.op;
  }
}

void UnitTimer::Recorder::endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) {
  UnitGraph *graph = findGraph(classNumber, task);
  if (!graph)
    return;
  wait(classNumber, task, *graph);
  Place place{getStage(classNumber), unsigned(graph->nodes.size()), getUnit(classNumber, task.unit).microbatch};
  auto sender = places.find({send.classNumber, send.id});
  bool isOfUnit = sender != places.end() && sender->second.microbatch == place.microbatch;
  if (isOfUnit && sender->second.stage == place.stage)
    graph->earlier.push_back(sender->second.node);
  places[{classNumber, task.id}] = place;
  Node &node = addNode(classNumber, task, *graph);
  if (isOfUnit && sender->second.stage < place.stage) // what comes back is for a later unit, which begins behind it
    node.sender = sender->second;
}

/// What a unit of a kind says of the sizes of a class. Null if the class has no such unit.
std::unique_ptr<UnitTimer::Recorder::ClassSizes> UnitTimer::Recorder::bind(unsigned classNumber, bool decodes,
                                                                           const UnitBindings &bindings) {
  const ClassTasks &tasks = walk.getTasks(classNumber);
  for (unsigned index = 0; index < tasks.getUnits().size(); ++index) {
    if (!isKept(classNumber, index) || isDecode(classNumber, index) != decodes)
      continue;
    SizeBinding binding = graph.getBinding(getUnit(classNumber, index).environment);
    binding.bind(tasks.getCoordinates());
    for (auto &[symbol, bound] : bindings)
      binding.bind(symbol, bound);
    return std::make_unique<ClassSizes>(std::move(binding), diags);
  }
  return nullptr;
}

void UnitTimer::Recorder::evaluateSlots(unsigned classNumber, ClassSizes &sizes, bool decodes) {
  const ClassTasks &tasks = walk.getTasks(classNumber);
  for (auto [slot, value] : llvm::zip(tasks.getSlots(), values[classNumber])) {
    if (slot.kind != RankSlot::Kind::Size)
      continue;
    bool isOfKind = false; // the slots of the other kind of unit are in another environment
    for (unsigned index = 0; index < tasks.getUnits().size(); ++index)
      isOfKind |= isDecode(classNumber, index) == decodes &&
                  graph.pipeline.environments.getAlike(getUnit(classNumber, index).environment) == slot.environment;
    if (isOfKind)
      value = std::max(slot.least, slot.op ? sizes.sizes.evaluate(slot.size, *slot.op)
                                           : sizes.sizes.evaluate(slot.size, *slot.value));
  }
}

/// False after a report.
bool UnitTimer::Recorder::evaluate(Price &price, ClassSizes &sizes) {
  Task task = price.task;
  task.bytes = task.bytes.resolve(values[price.classNumber]);
  if (price.cost) {
    auto findShape = [&](Size size) { return evaluateShape(size, *task.op, sizes.binding, sizes.sizes); };
    // The same sizes lead to the same work.
    auto isSame = [&](auto &each) { return findShape(each.first) == each.second; };
    if (!price.sizes.empty() && llvm::all_of(price.sizes, isSame))
      return true;
    price.sizes.clear();
    price.work = getWork(graph, *task.op, *price.cost, part.kernels.get(), [&](Size size) {
      int64_t value = findShape(size);
      if (llvm::none_of(price.sizes, [&](auto &each) { return each.first == size; }))
        price.sizes.emplace_back(size, value);
      return value;
    });
    task.work = &price.work;
    insideTables &= machine.isInsideTables(price.work);
  } else if (task.kind == TaskKind::Collective) {
    insideTables &=
        machine.isInsideTables(getCollectiveKind(task.op->kind), int64_t(task.bytes.resolve({})), price.place);
  }
  llvm::StringRef missing;
  std::optional<Ticks> ticks =
      findPrice(task, machine, part.runtime, slowness[price.classNumber], price.place, missing);
  if (!ticks) {
    reportMissingRate(task, machine, graph.loc, missing, diags);
    return false;
  }
  price.ticks = *ticks;
  return true;
}

bool UnitTimer::Recorder::evaluate(const PackedUnit &unit) {
  UnitBindings bindings = bindPackedUnit(graph, unit);
  std::vector<std::unique_ptr<ClassSizes>> sizes;
  for (unsigned number = 0; number < values.size(); ++number)
    if (sizes.push_back(bind(number, unit.decodes, bindings)); sizes.back())
      evaluateSlots(number, *sizes.back(), unit.decodes);
  for (Price &price : prices)
    if (isKept(price.classNumber, price.unit) && isDecode(price.classNumber, price.unit) == unit.decodes &&
        !evaluate(price, *sizes[price.classNumber]))
      return false;
  if (hasCharges)
    addSurcharges(unit);
  return !diags.hasErrors();
}

void UnitTimer::Recorder::addSurcharges(const PackedUnit &unit) {
  for (unsigned number = 0; number < surcharges.size(); ++number) {
    std::vector<Ticks> alone;
    for (unsigned price : priceOfItems[unit.decodes][number])
      alone.push_back(prices[price].ticks);
    more[number] = surcharges[number].find(
        unit.decodes, alone, [&](PhaseKind kind) { return hasTasks(unit, kind); }, part.runtime);
  }
}

/// What a task takes, by the place of its price among those of a graph.
Ticks UnitTimer::Recorder::getDuration(const UnitGraph &graph, unsigned price) const {
  Ticks alone = prices[graph.prices[price]].ticks;
  if (!hasCharges)
    return alone;
  auto [owner, place] = graph.tasks[price];
  return alone + std::min(more[owner][place], maxTicks - alone);
}

std::pair<Ticks, Ticks> UnitTimer::Recorder::run(const PackedUnit &unit, unsigned stage, Ticks busy, Ticks given,
                                                 std::vector<Ticks> &lanes) {
  const UnitGraph &graph = graphs[unit.decodes][stage];
  std::vector<Ticks> before = lanes;
  auto follow = [&](Ticks time) { return given ? std::min(std::max(time, busy) + given, maxTicks) : time; };
  ends[stage].clear();
  Ticks last = 0, sent = 0;
  unsigned earlier = 0, lane = 0, price = 0;
  for (const Node &node : graph.nodes) {
    bool isAbsent = !hasTasks(unit, node.kind);
    Ticks end = follow(node.sender ? ends[node.sender->stage][node.sender->node] : 0);
    for (; earlier < node.endOfEarlier; ++earlier)
      end = std::max(end, ends[stage][graph.earlier[earlier]]);
    for (; lane < node.endOfLanes; ++lane)
      end = std::max(end, before[graph.lanes[lane]]);
    unsigned firstPrice = price;
    Ticks duration = 0;
    for (; price < node.endOfPrices; ++price) {
      end = std::max(end, lanes[prices[graph.prices[price]].lane]);
      duration = std::max(duration, getDuration(graph, price));
    }
    end = std::min(end + duration, maxTicks);
    if (isAbsent) {
      ends[stage].push_back(0); // there is no such task
      continue;
    }
    for (unsigned taken = firstPrice; taken < price; ++taken)
      lanes[prices[graph.prices[taken]].lane] = end;
    ends[stage].push_back(end);
    (node.isSend ? sent : last) = std::max(node.isSend ? sent : last, end);
  }
  return {last, sent};
}
