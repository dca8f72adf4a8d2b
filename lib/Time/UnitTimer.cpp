//===- UnitTimer.cpp - how long units take, one after the other -----------===//
#include "stage/Time/UnitTimer.h"
#include "MachinePricer.h"
#include "UnitSurcharges.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/Tasks/ShapeSizes.h"
#include "stage/Time/StepTime.h"

using namespace stage;

/// Copies stand in front of a unit that has some.
static bool hasTasks(const PackedUnit &unit, PhaseKind kind) {
  return (kind != PhaseKind::Store || !unit.stored.empty()) && (kind != PhaseKind::Load || !unit.loaded.empty());
}

/// Keeps the tasks of each kind of unit.
class UnitTimer::Recorder final : public TaskPricer {
public:
  Recorder(const Program &program, const Machine &machine, const Runtime &runtime, DiagnosticEngine &diags)
      : program(program), graph(*program.graph), machine(machine), runtime(runtime), diags(diags),
        hasCharges(hasSurcharges({&program}, runtime)), phases(program.graph->listForwardPhases()),
        ends(program.stages.size()), walk({&program}, machine, options, *this, diags) {
    for (std::vector<UnitGraph> &ofStages : graphs)
      ofStages.resize(program.stages.size());
  }

  bool record();
  /// Finds what the tasks of a unit take, behind the unit that was evaluated before. False after a report.
  bool evaluate(const PackedUnit &unit);
  /// No unit has been evaluated.
  void restart();
  bool isInsideTables() const { return insideTables; }
  void addInsideTables(bool isInside) { insideTables &= isInside; }
  /// Runs that unit on a stage, behind the stages before, and updates `lanes`. The stage is busy until `busy` and takes
  /// `given` before the unit. Returns when its tasks end, and when its messages have arrived.
  std::pair<Ticks, Ticks> run(const PackedUnit &unit, unsigned stage, Ticks busy, Ticks given,
                              std::vector<Ticks> &lanes);

  bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) override;
  void takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                   const WaitingTask &waiting) override;
  void end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) override;
  void endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) override;

  /// By class, stream and kind of work.
  std::map<std::tuple<unsigned, uint64_t, unsigned>, unsigned> laneNumbers;

private:
  /// What tasks take that have the same numbers, on a stream of a class.
  struct Price {
    Task task; ///< Its kind, op, memory and numbers.
    GroupPlace place;
    unsigned classNumber, lane;
    unsigned unit;                                          ///< Of the recorded ones.
    Ticks ticks = 0;                                        ///< In the unit that was evaluated.
    std::optional<OpCost> cost{};                           ///< Of what computes.
    Work work{};                                            ///< Likewise, in that unit.
    llvm::SmallVector<std::pair<Size, int64_t>, 0> sizes{}; ///< From which that work follows, and what they were.
  };
  /// A task of a class as it was taken up.
  struct Taken {
    TimedTask task;
    unsigned price;
    llvm::SmallVector<uint64_t, 4> awaited;
  };
  /// Of a class: binds what a unit says.
  struct ClassSizes {
    ClassSizes(SizeBinding bound, DiagnosticEngine &diags) : binding(std::move(bound)), sizes(binding, diags) {}
    SizeBinding binding;
    TaskSizes sizes;
  };
  /// A task of the microbatch that is kept, by its place in the graph of a stage.
  struct Place {
    unsigned stage, node;
    uint64_t microbatch;
  };
  struct Node {
    unsigned endOfEarlier, endOfLanes, endOfPrices; ///< In the lists below, which begin where those before end.
    PhaseKind kind;
    bool isSend = false;           ///< To another stage.
    std::optional<Place> sender{}; ///< Of a message from another stage.
  };
  /// The tasks of a unit on a stage, in an order in which each stands behind those for which it waits.
  struct UnitGraph {
    std::vector<Node> nodes;
    std::vector<unsigned> earlier;                    ///< Nodes for which nodes wait.
    std::vector<unsigned> lanes;                      ///< In which a task of an earlier unit is for which a node waits.
    std::vector<unsigned> prices;                     ///< Of nodes: one for each class that runs it; none of a receive.
    std::vector<std::pair<unsigned, uint64_t>> tasks; ///< Of each price its class and, from record() on, the place.
  };

  unsigned getStage(unsigned classNumber) const { return walk.getTasks(classNumber).getStage().stage; }
  const PlacedUnit &getUnit(unsigned classNumber, unsigned unit) const {
    return walk.getTasks(classNumber).getUnits()[unit];
  }
  bool isDecode(unsigned classNumber, unsigned unit) const;
  /// A unit of the second half stands behind one of each kind.
  bool isKept(unsigned classNumber, unsigned unit) const {
    return getUnit(classNumber, unit).microbatch >= phases.size() / 2;
  }
  void take(unsigned classNumber, const Task &task, const GroupPlace &place, const WaitingTask &waiting);
  void listItems(unsigned classNumber);
  std::unique_ptr<ClassSizes> bind(unsigned classNumber, bool decodes, const UnitBindings &bindings);
  void evaluateSlots(unsigned classNumber, ClassSizes &sizes, bool decodes);
  bool evaluate(Price &price, ClassSizes &sizes);
  void addSurcharges(const PackedUnit &unit);
  Ticks getDuration(const UnitGraph &graph, unsigned price) const;
  UnitGraph *findGraph(unsigned classNumber, const WaitingTask &task);
  void wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);
  Node &addNode(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);

  const Program &program;
  const Graph &graph;
  const Machine &machine;
  const Runtime &runtime;
  DiagnosticEngine &diags;
  const TaskOptions options{.works = true, .keepsSizes = true};
  const bool hasCharges; ///< Tasks may take more than their prices.
  bool insideTables = true;
  const std::vector<PhaseKind> phases; ///< By microbatch.
  std::vector<Price> prices;
  std::map<std::vector<uint64_t>, unsigned> priceNumbers;   ///< By all that tells prices apart.
  std::map<std::pair<unsigned, uint64_t>, Place> places;    ///< By class and id.
  std::map<std::pair<unsigned, uint64_t>, unsigned> laneOf; ///< The same.
  std::vector<UnitGraph> graphs[2];                         ///< Of prompts and of decode steps, by stage.
  std::vector<std::vector<uint64_t>> values;                ///< Of slots, by class.
  std::vector<std::vector<Ticks>> ends;                     ///< Of the nodes of the unit that runs, by stage.
  std::vector<std::optional<Rational>> slowness;            ///< By class.
  // By class, where there are charges:
  std::vector<std::vector<Taken>> taken; ///< Until all are recorded.
  std::vector<UnitSurcharges> surcharges;
  std::vector<std::vector<unsigned>> priceOfItems[2]; ///< Of prompts and of decode steps.
  std::vector<std::vector<Ticks>> more;               ///< Of the items of the unit that was evaluated.
  std::vector<unsigned> numLanes;
  std::vector<unsigned> ownLanes; ///< By lane: its number among those of its class.
  StepWalk walk;
};

bool UnitTimer::Recorder::record() {
  if (!checkTimed({&program}, machine, options, diags) || !walk.run())
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
    price.work = getWork(graph, *task.op, *price.cost, [&](Size size) {
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
  std::optional<Ticks> ticks = findPrice(task, machine, runtime, slowness[price.classNumber], price.place, missing);
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
        unit.decodes, alone, [&](PhaseKind kind) { return hasTasks(unit, kind); }, runtime);
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

UnitTimer::UnitTimer(std::unique_ptr<Recorder> recorder) : recorder(std::move(recorder)) {}
UnitTimer::~UnitTimer() = default;

std::unique_ptr<UnitTimer> UnitTimer::create(const Program &program, const Machine &machine, const Runtime &runtime,
                                             DiagnosticEngine &diags) {
  auto recorder = std::make_unique<Recorder>(program, machine, runtime, diags);
  if (!recorder->record())
    return nullptr;
  std::unique_ptr<UnitTimer> timer(new UnitTimer(std::move(recorder)));
  timer->lanes.resize(timer->recorder->laneNumbers.size());
  return timer;
}

std::optional<Ticks> UnitTimer::run(llvm::ArrayRef<PackedUnit> units, Ticks given, llvm::MutableArrayRef<Ticks> busy) {
  Ticks last = 0;
  for (const PackedUnit &unit : units) {
    if (!recorder->evaluate(unit))
      return std::nullopt;
    lastUnit = unit;
    for (unsigned stage = 0; stage < busy.size(); ++stage) {
      auto [end, sent] = recorder->run(unit, stage, busy[stage], given, lanes);
      busy[stage] = std::max(busy[stage], end);
      last = std::max({last, end, sent});
    }
    given = 0;
  }
  return last;
}

bool UnitTimer::continueFrom(const UnitTimer &before) {
  for (auto &[lane, number] : before.recorder->laneNumbers)
    if (auto known = recorder->laneNumbers.find(lane); known != recorder->laneNumbers.end())
      lanes[known->second] = before.lanes[number];
  recorder->addInsideTables(before.isInsideTables());
  lastUnit = before.lastUnit;
  return !lastUnit || recorder->evaluate(*lastUnit);
}

void UnitTimer::pass(Ticks time) {
  for (Ticks &rest : lanes)
    rest = std::max<Ticks>(0, rest - time);
}

void UnitTimer::restart() {
  pass(maxTicks);
  recorder->restart();
  lastUnit.reset();
}

bool UnitTimer::isInsideTables() const { return recorder->isInsideTables(); }
