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
        phases(program.graph->listForwardPhases()), walk({&program}, options, *this, diags) {
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
  /// Runs that unit on a stage, and updates `lanes`. Tasks begin at `begin`, copies of caches at `copied`. Returns when
  /// the unit ends, and when the next stage has its messages.
  std::pair<Ticks, Ticks> run(const PackedUnit &unit, unsigned stage, Ticks begin, Ticks copied,
                              std::vector<Ticks> &lanes);

  bool price(unsigned classNumber, const Task &task, int64_t members, WaitingTask &waiting) override;
  void end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) override;
  void endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) override;

  /// By class, stream and kind of work.
  std::map<std::tuple<unsigned, uint64_t, unsigned>, unsigned> laneNumbers;

private:
  /// What tasks take that have the same numbers, on a stream of a class.
  struct Price {
    Task task; ///< Its kind, op, memory and numbers.
    int64_t members;
    unsigned classNumber, lane;
    unsigned unit;   ///< Of the recorded ones.
    Ticks ticks = 0; ///< In the unit that was evaluated.
  };
  struct Node {
    unsigned endOfEarlier, endOfPrices; ///< In the lists below, which begin where those of the node before end.
    bool isSend;                        ///< To another stage.
    /// Of a copy of a cache, in front of the unit: behind what the stage has computed, whatever comes from others.
    PhaseKind kind;
  };
  /// The tasks of a unit on a stage, in an order in which each stands behind those for which it waits.
  struct UnitGraph {
    std::vector<Node> nodes;
    std::vector<unsigned> earlier; ///< Nodes for which nodes wait.
    std::vector<unsigned> prices;  ///< Of nodes: one for each class that runs it; none of a receive.
  };

  unsigned getStage(unsigned classNumber) const { return walk.getTasks(classNumber).getStage().stage; }
  const PlacedUnit &getUnit(unsigned classNumber, unsigned unit) const {
    return walk.getTasks(classNumber).getUnits()[unit];
  }
  /// Of the decode step. Copies of caches are units of their own, with the microbatch of the unit behind them.
  bool isDecode(unsigned classNumber, unsigned unit) const;
  /// The id of the first task of that microbatch.
  uint64_t getFirst(unsigned classNumber, unsigned unit) const;
  unsigned getComputeLane(unsigned classNumber) const {
    auto [stream, kind] = StepWalk::getLaneKey(Task());
    return laneNumbers.at({classNumber, stream, kind});
  }
  void wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);
  static void addNode(UnitGraph &graph, bool isSend, PhaseKind kind);

  const Program &program;
  const Graph &graph;
  const Machine &machine;
  DiagnosticEngine &diags;
  const TaskOptions options{.keepsSizes = true};
  const std::vector<PhaseKind> phases; ///< By microbatch.
  std::vector<Price> prices;
  std::map<std::vector<uint64_t>, unsigned> priceNumbers;   ///< By all that tells prices apart.
  std::map<std::pair<unsigned, uint64_t>, unsigned> nodeOf; ///< By class and id.
  std::vector<UnitGraph> graphs[2];                         ///< Of prompts and of decode steps, by stage.
  std::vector<std::vector<uint64_t>> values;                ///< Of slots, by class.
  std::vector<Ticks> ends;                                  ///< Of the nodes of the unit that runs.
  StepWalk walk;
};

bool UnitTimer::Recorder::isDecode(unsigned classNumber, unsigned unit) const {
  return phases[getUnit(classNumber, unit).microbatch] == PhaseKind::Decode;
}

uint64_t UnitTimer::Recorder::getFirst(unsigned classNumber, unsigned unit) const {
  while (unit && getUnit(classNumber, unit - 1).microbatch == getUnit(classNumber, unit).microbatch)
    --unit;
  return getUnit(classNumber, unit).base;
}

bool UnitTimer::Recorder::price(unsigned classNumber, const Task &task, int64_t members, WaitingTask &waiting) {
  auto [stream, kind] = StepWalk::getLaneKey(task);
  unsigned lane = laneNumbers.try_emplace({classNumber, stream, kind}, unsigned(laneNumbers.size())).first->second;
  auto encode = [](TaskValue value) { return value.isSlot() ? uint64_t(value.getSlot()) : value.resolve({}); };
  std::vector<uint64_t> key = {waiting.unit,        lane,
                               uint64_t(task.kind), task.op ? uint64_t(task.op->kind) : 0,
                               task.op != nullptr,  task.flops.isSlot(),
                               encode(task.flops),  task.bytes.isSlot(),
                               encode(task.bytes),  uint64_t(members)};
  auto [number, isNew] = priceNumbers.try_emplace(std::move(key), unsigned(prices.size()));
  if (isNew) {
    Task kept;
    kept.kind = task.kind;
    kept.op = task.op;
    kept.runsOnHost = task.runsOnHost;
    kept.flops = task.flops;
    kept.bytes = task.bytes;
    prices.push_back({kept, members, classNumber, lane, waiting.unit});
  }
  waiting.price = number->second;
  return true;
}

/// The next node waits for those of its unit and stage for which a task waits.
void UnitTimer::Recorder::wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph) {
  uint64_t first = getFirst(classNumber, task.unit);
  for (uint64_t id : task.awaited)
    if (id >= first)
      graph.earlier.push_back(nodeOf.at({classNumber, id}));
}

/// The next node is what has been listed.
void UnitTimer::Recorder::addNode(UnitGraph &graph, bool isSend, PhaseKind kind) {
  graph.nodes.push_back({unsigned(graph.earlier.size()), unsigned(graph.prices.size()), isSend, kind});
}

void UnitTimer::Recorder::end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) {
  for (unsigned stage = 0; stage < program.stages.size(); ++stage) {
    UnitGraph *graph = nullptr;
    bool isSend = false;
    PhaseKind kind = PhaseKind::Forward;
    for (auto [classNumber, task] : members)
      if (getStage(classNumber) == stage) {
        graph = &graphs[isDecode(classNumber, task->unit)][stage];
        wait(classNumber, *task, *graph);
        graph->prices.push_back(task->price);
        nodeOf[{classNumber, task->id}] = unsigned(graph->nodes.size());
        isSend = task->kind == TaskKind::Send && !prices[task->price].task.op;
        kind = getUnit(classNumber, task->unit).kind;
      }
    if (graph)
      addNode(*graph, isSend, kind);
  }
}

void UnitTimer::Recorder::endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) {
  UnitGraph &graph = graphs[isDecode(classNumber, task.unit)][getStage(classNumber)];
  wait(classNumber, task, graph);
  // What another stage, or an earlier unit, has sent is there when the unit begins.
  if (getStage(send.classNumber) == getStage(classNumber) && send.id >= getFirst(send.classNumber, task.unit))
    graph.earlier.push_back(nodeOf.at({send.classNumber, send.id}));
  nodeOf[{classNumber, task.id}] = unsigned(graph.nodes.size());
  addNode(graph, /*isSend=*/false, getUnit(classNumber, task.unit).kind);
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
    std::optional<Ticks> ticks = findDuration(task, machine, price.members, missing);
    if (!ticks) {
      reportMissingRate(task, graph.loc, missing, diags);
      return false;
    }
    price.ticks = *ticks;
  }
  return !diags.hasErrors();
}

std::pair<Ticks, Ticks> UnitTimer::Recorder::run(const PackedUnit &unit, unsigned stage, Ticks begin, Ticks copied,
                                                 std::vector<Ticks> &lanes) {
  const UnitGraph &graph = graphs[unit.decodes][stage];
  std::vector<Ticks> before = lanes;
  ends.clear();
  Ticks last = begin;
  std::optional<Ticks> sent;
  unsigned earlier = 0, price = 0;
  for (const Node &node : graph.nodes) {
    if ((node.kind == PhaseKind::Store && unit.stored.empty()) ||
        (node.kind == PhaseKind::Load && unit.loaded.empty())) {
      earlier = node.endOfEarlier; // no such task in this unit
      price = node.endOfPrices;
      ends.push_back(0);
      continue;
    }
    bool copies = movesCaches(node.kind);
    Ticks end = copies ? copied : begin;
    for (; earlier < node.endOfEarlier; ++earlier)
      end = std::max(end, ends[graph.earlier[earlier]]);
    unsigned firstPrice = price;
    for (; price < node.endOfPrices; ++price) {
      const Price &own = prices[graph.prices[price]];
      end = std::max(end, before[own.lane]);
      if (copies)
        end = std::max(end, before[getComputeLane(own.classNumber)]);
    }
    if (firstPrice < price)
      end = std::min(end + prices[graph.prices[firstPrice]].ticks, maxTicks);
    for (unsigned taken = firstPrice; taken < price; ++taken)
      lanes[prices[graph.prices[taken]].lane] = end;
    ends.push_back(end);
    if (node.isSend)
      sent = std::max(sent.value_or(0), end);
    else
      last = std::max(last, end);
  }
  return {last, sent.value_or(last)};
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
    Ticks arrival = 0;
    for (unsigned stage = 0; stage < busy.size(); ++stage) {
      Ticks begin = given ? std::min(std::max(arrival, busy[stage]) + given, maxTicks) : arrival;
      Ticks copied = given ? std::min(busy[stage] + given, maxTicks) : 0;
      auto [end, sent] = recorder->run(unit, stage, begin, copied, lanes);
      busy[stage] = std::max(busy[stage], end);
      last = std::max({last, end, sent});
      arrival = sent;
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
