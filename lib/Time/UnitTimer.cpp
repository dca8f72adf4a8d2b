//===- UnitTimer.cpp - how long units take, one after the other -----------===//
#include "stage/Time/UnitTimer.h"
#include "StepWalk.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/Time/StepTime.h"

using namespace stage;

/// Keeps the tasks of each kind of unit.
class UnitTimer::Recorder final : public TaskPricer {
public:
  Recorder(const Program &program, const Machine &machine, DiagnosticEngine &diags)
      : program(program), graph(*program.graph), machine(machine), diags(diags),
        phases(program.graph->listForwardPhases()), ends(program.stages.size()),
        walk({&program}, machine, options, *this, diags) {
    for (std::vector<UnitGraph> &ofStages : graphs)
      ofStages.resize(program.stages.size());
  }

  bool record() {
    if (!walk.run())
      return false;
    for (unsigned number = 0; number < walk.getNumClasses(); ++number)
      values.emplace_back(walk.getTasks(number).getSlots().size());
    return true;
  }

  /// Finds what the tasks of a unit take. False after a report.
  bool evaluate(const PackedUnit &unit);
  /// Runs that unit on a stage, behind the stages before, and updates `lanes`. The stage is busy until `busy` and takes
  /// `given` before the unit. Returns when its tasks end, and when its messages have arrived.
  std::pair<Ticks, Ticks> run(const PackedUnit &unit, unsigned stage, Ticks busy, Ticks given,
                              std::vector<Ticks> &lanes);

  bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) override;
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
    unsigned unit;   ///< Of the recorded ones.
    Ticks ticks = 0; ///< In the unit that was evaluated.
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
    std::vector<unsigned> earlier; ///< Nodes for which nodes wait.
    std::vector<unsigned> lanes;   ///< In which a task of an earlier unit is for which a node waits.
    std::vector<unsigned> prices;  ///< Of nodes: one for each class that runs it; none of a receive.
  };

  unsigned getStage(unsigned classNumber) const { return walk.getTasks(classNumber).getStage().stage; }
  const PlacedUnit &getUnit(unsigned classNumber, unsigned unit) const {
    return walk.getTasks(classNumber).getUnits()[unit];
  }
  bool isDecode(unsigned classNumber, unsigned unit) const;
  UnitGraph *findGraph(unsigned classNumber, const WaitingTask &task);
  void wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);
  Node &addNode(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);

  const Program &program;
  const Graph &graph;
  const Machine &machine;
  DiagnosticEngine &diags;
  const TaskOptions options{.keepsSizes = true};
  const std::vector<PhaseKind> phases; ///< By microbatch.
  std::vector<Price> prices;
  std::map<std::vector<uint64_t>, unsigned> priceNumbers;   ///< By all that tells prices apart.
  std::map<std::pair<unsigned, uint64_t>, Place> places;    ///< By class and id.
  std::map<std::pair<unsigned, uint64_t>, unsigned> laneOf; ///< The same.
  std::vector<UnitGraph> graphs[2];                         ///< Of prompts and of decode steps, by stage.
  std::vector<std::vector<uint64_t>> values;                ///< Of slots, by class.
  std::vector<std::vector<Ticks>> ends;                     ///< Of the nodes of the unit that runs, by stage.
  StepWalk walk;
};

/// Copies of caches are units of their own, with the microbatch of the unit behind them.
bool UnitTimer::Recorder::isDecode(unsigned classNumber, unsigned unit) const {
  return phases[getUnit(classNumber, unit).microbatch] == PhaseKind::Decode;
}

bool UnitTimer::Recorder::price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) {
  auto [stream, kind] = StepWalk::getLaneKey(task);
  unsigned lane = laneNumbers.try_emplace({classNumber, stream, kind}, unsigned(laneNumbers.size())).first->second;
  laneOf[{classNumber, task.id}] = lane;
  auto encode = [](TaskValue value) { return value.isSlot() ? uint64_t(value.getSlot()) : value.resolve({}); };
  std::vector<uint64_t> key = {waiting.unit,        lane,
                               uint64_t(task.kind), task.op ? uint64_t(task.op->kind) : 0,
                               task.op != nullptr,  task.flops.isSlot(),
                               encode(task.flops),  task.bytes.isSlot(),
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
    kept.flops = task.flops;
    kept.bytes = task.bytes;
    prices.push_back({kept, place, classNumber, lane, waiting.unit});
  }
  waiting.price = number->second;
  return true;
}

/// Null for the first unit of each kind, behind which there is not one of each.
UnitTimer::Recorder::UnitGraph *UnitTimer::Recorder::findGraph(unsigned classNumber, const WaitingTask &task) {
  bool isSecond = getUnit(classNumber, task.unit).microbatch >= phases.size() / 2;
  return isSecond ? &graphs[isDecode(classNumber, task.unit)][getStage(classNumber)] : nullptr;
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

bool UnitTimer::Recorder::evaluate(const PackedUnit &unit) {
  UnitBindings bindings = bindPackedUnit(graph, unit);
  for (unsigned number = 0; number < values.size(); ++number) {
    const ClassTasks &tasks = walk.getTasks(number);
    std::optional<SizeBinding> binding;
    std::optional<TaskSizes> sizes;
    for (auto [slot, value] : llvm::zip(tasks.getSlots(), values[number])) {
      if (slot.kind != RankSlot::Kind::Size)
        continue;
      bool isOfKind = false; // the slots of the other kind of unit are in another environment
      for (unsigned index = 0; index < tasks.getUnits().size(); ++index)
        isOfKind |= isDecode(number, index) == unit.decodes &&
                    graph.pipeline.environments.getAlike(getUnit(number, index).environment) == slot.environment;
      if (!isOfKind)
        continue;
      if (!binding) {
        binding = graph.getBinding(slot.environment);
        binding->bind(tasks.getCoordinates());
        for (auto &[symbol, bound] : bindings)
          binding->bind(symbol, bound);
        sizes.emplace(*binding, diags);
      }
      value = std::max(slot.least,
                       slot.op ? sizes->evaluate(slot.size, *slot.op) : sizes->evaluate(slot.size, *slot.value));
    }
  }
  for (Price &price : prices) {
    if (isDecode(price.classNumber, price.unit) != unit.decodes)
      continue;
    Task task = price.task;
    task.flops = task.flops.resolve(values[price.classNumber]);
    task.bytes = task.bytes.resolve(values[price.classNumber]);
    llvm::StringRef missing;
    std::optional<Ticks> ticks = findDuration(task, machine, price.place, missing);
    if (!ticks) {
      reportMissingRate(task, machine, graph.loc, missing, diags);
      return false;
    }
    price.ticks = *ticks;
  }
  return !diags.hasErrors();
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
    bool isAbsent =
        (node.kind == PhaseKind::Store && unit.stored.empty()) || (node.kind == PhaseKind::Load && unit.loaded.empty());
    Ticks end = follow(node.sender ? ends[node.sender->stage][node.sender->node] : 0);
    for (; earlier < node.endOfEarlier; ++earlier)
      end = std::max(end, ends[stage][graph.earlier[earlier]]);
    for (; lane < node.endOfLanes; ++lane)
      end = std::max(end, before[graph.lanes[lane]]);
    unsigned firstPrice = price;
    for (; price < node.endOfPrices; ++price)
      end = std::max(end, lanes[prices[graph.prices[price]].lane]);
    if (firstPrice < price)
      end = std::min(end + prices[graph.prices[firstPrice]].ticks, maxTicks);
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

std::unique_ptr<UnitTimer> UnitTimer::create(const Program &program, const Machine &machine, DiagnosticEngine &diags) {
  auto recorder = std::make_unique<Recorder>(program, machine, diags);
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
    for (unsigned stage = 0; stage < busy.size(); ++stage) {
      auto [end, sent] = recorder->run(unit, stage, busy[stage], given, lanes);
      busy[stage] = std::max(busy[stage], end);
      last = std::max({last, end, sent});
    }
    given = 0;
  }
  return last;
}

void UnitTimer::continueFrom(const UnitTimer &before) {
  for (auto &[lane, number] : before.recorder->laneNumbers)
    if (auto known = recorder->laneNumbers.find(lane); known != recorder->laneNumbers.end())
      lanes[known->second] = before.lanes[number];
}

void UnitTimer::pass(Ticks time) {
  for (Ticks &rest : lanes)
    rest = std::max<Ticks>(0, rest - time);
}
