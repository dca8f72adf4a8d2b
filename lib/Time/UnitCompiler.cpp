//===- UnitCompiler.cpp - which units have the same tasks -----------------===//
#include "UnitCompiler.h"
#include "MachinePricer.h"
#include "stage/Tasks/RankSlots.h"
#include "stage/Time/StepTime.h"

using namespace stage;

/// While a unit is compiled, places from here on are those of references.
constexpr uint32_t reference = uint32_t(1) << 31;

UnitCompiler::UnitCompiler(Connections &connections, UnitStore &store, const TaskOptions &options, unsigned classNumber,
                           DiagnosticEngine &diags)
    : connections(connections), store(store), classNumber(classNumber),
      rank(connections.classes.getRepresentative(classNumber)),
      sizesOf(store.findSizes(classNumber, connections.classes.describe(classNumber))),
      tasks(connections.program, connections.groups, options, connections.classes.describe(classNumber), diags,
            &connections.costs, connections.kernels),
      slowness(tasks.getSlowness()) {
  llvm::DenseMap<const TaskLayout *, uint32_t> numbers;
  for (const PlacedUnit &unit : tasks.getUnits()) {
    bases.push_back(unit.base);
    templates.push_back(numbers.try_emplace(unit.layout, uint32_t(numbers.size())).first->second);
  }
  described.resize(numbers.size());
}

/// Of the template of a unit.
void UnitCompiler::describe(unsigned number) {
  std::optional<ClassTemplate> &description = described[templates[number]];
  if (!description)
    description = store.describe(classNumber, sizesOf, tasks, tasks.getUnits()[number]);
}

UnitCompiler::Relations UnitCompiler::listRelations(unsigned number) {
  const PlacedUnit &unit = tasks.getUnits()[number];
  Relations relations;
  auto addTask = [&](std::optional<uint64_t> id) {
    if (!id)
      return relations.list.push_back({});
    uint32_t other = *id >= bases[number - 1] ? number - 1 : uint32_t(findUnit(*id));
    relations.list.push_back({other, uint32_t(*id - bases[other])});
  };
  llvm::for_each(tasks.getChains(), addTask);
  addTask(tasks.getPosted(number));
  addTask(tasks.getLoad(unit));
  addTask(number ? tasks.getWorkBefore(number) : std::nullopt);
  addTask(tasks.getWorkBeforeLoop());
  auto addUnit = [&](uint64_t first, uint64_t count) {
    relations.list.push_back({count ? uint32_t(findUnit(first)) : UnitRelation::none});
  };
  auto addPlaced = [&](const PlacedUnit *other) {
    other ? addUnit(other->base, other->layout->getNumNodes()) : addUnit(0, 0);
  };
  // Those whose values it may use, and those that have sampled its tokens.
  llvm::SmallVector<const PlacedUnit *, 8> open = {&unit}, seen;
  while (!open.empty()) {
    const PlacedUnit *next = open.pop_back_val();
    for (const PlacedUnit *giver : {next->giver, next->previous, next->feeder}) {
      addPlaced(giver);
      bool isNew = giver && !llvm::is_contained(seen, giver);
      relations.ways.push_back(isNew);
      if (isNew) {
        seen.push_back(giver);
        open.push_back(giver);
      }
    }
  }
  addPlaced(unit.updates);
  auto latest = tasks.getLatestBackwards();
  relations.numLatest = uint32_t(latest.size());
  for (const ClassTasks::NodeRange &other : latest)
    addUnit(other.first, other.count);
  auto awaitedUnits = tasks.getAwaitedUnits(number);
  relations.isKnown = awaitedUnits.has_value();
  relations.hasEdges = !awaitedUnits || !awaitedUnits->empty();
  if (awaitedUnits)
    for (const std::optional<ClassTasks::NodeRange> &other : *awaitedUnits)
      other ? addUnit(other->first, other->count) : addUnit(0, 0);
  return relations;
}

std::vector<uint32_t> UnitCompiler::listRelated(const Relations &relations) {
  std::vector<uint32_t> related;
  for (const UnitRelation &relation : relations.list)
    if (relation.unit != UnitRelation::none && !llvm::is_contained(related, relation.unit))
      related.push_back(relation.unit);
  llvm::sort(related);
  return related;
}

/// What tells kinds apart.
UnitCompiler::Key UnitCompiler::makeKindKey(unsigned number, const Relations &relations,
                                            llvm::ArrayRef<uint32_t> related) const {
  const PlacedUnit &unit = tasks.getUnits()[number];
  Key key = {getDescription(number).alike, connections.program.graph->pipeline.environments.getAlike(unit.environment),
             relations.numLatest, uint32_t(related.size())};
  key.reserve(key.size() + related.size() + 4 * relations.list.size());
  for (uint32_t other : related)
    key.push_back(getDescription(other).alike);
  for (const UnitRelation &relation : relations.list) {
    bool isAbsent = relation.unit == UnitRelation::none;
    key.push_back(isAbsent ? UnitRelation::none
                           : uint32_t(llvm::lower_bound(related, relation.unit) - related.begin()));
    key.push_back(relation.task);
  }
  addDistances(key, number, relations);
  return key;
}

/// How far the iterations of units whose values a unit may use are from its own. Edges may lead elsewhere in the first
/// iterations.
void UnitCompiler::addDistances(Key &key, unsigned number, const Relations &relations) const {
  const auto &loops = getDescription(number).loops;
  for (const UnitRelation &relation : relations.list)
    if (relation.unit != UnitRelation::none && relation.task == UnitRelation::none)
      for (auto [loop, begin] : loops)
        for (auto [other, itsBegin] : getDescription(relation.unit).loops)
          if (loop == other)
            key.push_back(uint32_t(itsBegin - begin));
  if (relations.hasEdges)
    for (auto [loop, begin] : loops)
      key.push_back(uint32_t(begin));
}

/// What kinds have in common that may have one prototype. A task that a relation leads to is waited for whatever it is;
/// who reads what is loaded beside it waits for it on other streams.
UnitCompiler::Key UnitCompiler::makeForm(unsigned number, const Relations &relations) const {
  const PlacedUnit &unit = tasks.getUnits()[number];
  std::optional<unsigned> streamOfLoad = tasks.getStreamOfLoad(unit);
  Key form = {getDescription(number).alike, connections.program.graph->pipeline.environments.getAlike(unit.environment),
              relations.numLatest, streamOfLoad ? *streamOfLoad : UnitRelation::none};
  llvm::append_range(form, relations.ways);
  for (const UnitRelation &relation : relations.list)
    form.push_back(relation.unit == UnitRelation::none   ? UnitRelation::none
                   : relation.task == UnitRelation::none ? getDescription(relation.unit).alike
                                                         : UnitRelation::none - 1);
  addDistances(form, number, relations);
  return form;
}

CompiledUnit *UnitCompiler::compileNext(std::vector<uint32_t> &related) {
  unsigned number = nextUnit++;
  describe(number);
  Relations relations = listRelations(number);
  related = listRelated(relations);
  Key key = makeKindKey(number, relations, related);
  auto skipAs = [&](CompiledUnit &unit) {
    skip(number, unit);
    compiled.push_back(&unit);
    return &unit;
  };
  if (auto known = store.kinds.find(key); known != store.kinds.end())
    return skipAs(*known->second);
  std::vector<UnitPrototype> &ofForm = store.prototypes[makeForm(number, relations)];
  auto isOnLane = [&](UnitRelation task, UnitPrototype::Lane lane) {
    return this->isOnLane(bases[task.unit] + task.task, lane);
  };
  for (const UnitPrototype &prototype : ofForm)
    if (std::unique_ptr<CompiledUnit> unit = prototype.derive(relations.list, related, isOnLane))
      return skipAs(*(store.kinds[std::move(key)] = std::move(unit)));
  auto unit = std::make_unique<CompiledUnit>();
  bool isExplained = relations.isKnown;
  if (!make(number, related, *unit, isExplained))
    return nullptr;
  CompiledUnit *made = unit.get();
  compiled.push_back(made);
  if (isExplained) {
    store.kinds[std::move(key)] = std::move(unit);
    ofForm.emplace_back(*made, relations.list, related, laneChecks);
  } else {
    others.push_back(std::move(unit));
  }
  return made;
}

void UnitCompiler::finish() {
  tasks.forgetUnits();
  templates = {};
  compiled = {};
  samples = {};
  awaited = {};
}

void UnitCompiler::skip(unsigned number, const CompiledUnit &unit) {
  uint64_t base = bases[number];
  ClassTasks::Chains after = tasks.getChains();
  for (auto [end, last] : llvm::zip(after, unit.chains))
    if (last)
      end = base + *last;
  std::optional<uint64_t> loop = tasks.getWorkBeforeLoop();
  tasks.skipUnit(number, after);
  tasks.setWorkBeforeLoop(unit.workBeforeLoop ? base + *unit.workBeforeLoop : loop);
}

/// Keeps a task of the unit that is made. False where it has no price.
bool UnitCompiler::take(const Task &task, uint64_t base, uint64_t firstPermute) {
  ++numMade;
  while (slots.size() < tasks.getSlots().size()) {
    const RankSlot &slot = tasks.getSlots()[slots.size()];
    bool isSize = slot.kind == RankSlot::Kind::Size;
    slots.push_back(isSize ? 0 : resolve(connections.program, connections.groups, slot, rank));
  }
  if (task.flops.isSlot() || task.bytes.isSlot() || task.tag.isSlot())
    return false;
  Sample sample{0, task.kind};
  GroupPlace own = 1;
  const GroupPlace *place = &own;
  if (task.kind == TaskKind::Collective) {
    if (!task.group.isSlot())
      return false;
    const RankSlot &slot = tasks.getSlots()[task.group.getSlot()];
    sample.connection = connections.findMeeting(classNumber, task, slot, task.group.resolve(slots));
    place = &connections.getMeeting(sample.connection).place;
  } else if (task.isMessage()) {
    const RankSlot &slot = tasks.getSlots()[task.peer.getSlot()];
    if (slot.kind != RankSlot::Kind::Stage && slot.kind != RankSlot::Kind::Neighbour)
      return false;
    int64_t peer = int64_t(task.peer.resolve(slots));
    sample.isPermute = slot.kind == RankSlot::Kind::Neighbour;
    if (sample.isPermute) {
      sample.connection = connections.findChannel(classNumber, task.kind == TaskKind::Send, slot, uint64_t(peer));
      sample.tag = task.tag.resolve({}) - firstPermute;
    }
    own = connections.machine.findPlace({int64_t(connections.program.firstRank) + rank, peer});
  } else if (task.isWait) {
    own = connections.machine.findPlace(
        {int64_t(connections.program.firstRank) + rank, int64_t(task.peer.resolve(slots))});
  }
  std::optional<uint32_t> number = store.findFacts(task, tasks.getEnvironment(), *place, sizesOf, slowness);
  if (!number)
    return false;
  sample.facts = *number;
  sample.begin = awaited.size();
  awaited.insert(awaited.end(), task.data.begin(), task.data.end());
  awaited.insert(awaited.end(), task.order.begin(), task.order.end());
  sample.end = awaited.size();
  samples[task.id - base] = sample;
  return true;
}

/// Adds the tasks of the rounds between the second and the last one.
bool UnitCompiler::repeat(const ClassTasks::Rounds &rounds, uint64_t base) {
  for (uint64_t place = 0; place < rounds.tasks; ++place) {
    const Sample first = samples[rounds.first - base + place],
                 second = samples[rounds.first - base + rounds.tasks + place];
    if (first.facts != second.facts || first.connection != second.connection)
      return false; // not the same op
    for (uint64_t round = 2; round + 1 < uint64_t(rounds.count); ++round) {
      Sample &sample = samples[rounds.first - base + round * rounds.tasks + place];
      sample = second;
      sample.tag += (second.tag - first.tag) * (round - 1);
      sample.begin = awaited.size();
      for (size_t i = 0; i < second.end - second.begin; ++i) {
        uint64_t before = awaited[first.begin + i], id = awaited[second.begin + i];
        awaited.push_back(id + (id - before) * (round - 1));
      }
      sample.end = awaited.size();
    }
  }
  return true;
}

bool UnitCompiler::make(unsigned number, std::vector<uint32_t> &related, CompiledUnit &unit, bool &isExplained) {
  const PlacedUnit &placed = tasks.getUnits()[number];
  if (placed.layout->getNumNodes() >= reference)
    return false;
  samples.assign(placed.layout->getNumNodes(), Sample());
  awaited.clear();
  laneChecks.clear();
  bool isGood = true;
  uint64_t firstPermute = tasks.getNumIssued().back();
  tasks.makeRounds(
      number, [&](const Task &task) { isGood = isGood && take(task, placed.base, firstPermute); },
      [&](const ClassTasks::Rounds &rounds) { isGood = isGood && repeat(rounds, placed.base); });
  if (!isGood)
    return false;
  refer(placed, related, unit, isExplained);
  unit.numPermutes = tasks.getNumIssued().back() - firstPermute;
  connect(unit, getDescription(number));
  for (uint32_t &place : unit.awaited)
    place = place >= reference ? place - reference : place + unit.getFirstTask();
  order(unit);
  listEvents(unit);
  if (!unit.isWhole)
    listLanes(unit);
  noteEnds(unit, placed);
  return true;
}

/// Makes what tasks wait for places: of tasks of the unit, and, from `reference` on, of references.
void UnitCompiler::refer(const PlacedUnit &placed, std::vector<uint32_t> &related, CompiledUnit &unit,
                         bool &isExplained) {
  constexpr uint32_t absent = UnitRelation::none;
  std::vector<std::vector<uint32_t>> numbers; // of references, by related unit and offset
  std::optional<uint32_t> beginning;
  size_t numListed = related.size();
  auto refer = [&](uint64_t id) {
    uint32_t other = uint32_t(findUnit(id));
    auto known = std::lower_bound(related.begin(), related.begin() + ptrdiff_t(numListed), other);
    bool isListed = known != related.begin() + ptrdiff_t(numListed) && *known == other;
    if (!isListed) {
      isExplained = false;
      known = std::find(related.begin() + ptrdiff_t(numListed), related.end(), other);
      if (known == related.end())
        known = related.insert(related.end(), other);
    }
    uint32_t place = uint32_t(known - related.begin()), inOther = uint32_t(id - bases[other]);
    numbers.resize(related.size());
    if (numbers[place].empty())
      numbers[place].assign(compiled[other]->getNumTasks(), absent);
    uint32_t &found = numbers[place][inOther];
    if (found == absent) {
      found = uint32_t(unit.references.size());
      unit.references.push_back({place, inOther});
    }
    unit.awaited.push_back(reference + found);
  };
  unit.awaited.reserve(awaited.size());
  unit.ends.reserve(samples.size());
  unit.facts.reserve(samples.size());
  unit.durations.reserve(samples.size());
  for (uint32_t offset = 0; offset < samples.size(); ++offset) {
    const Sample &sample = samples[offset];
    bool isReceive = sample.kind == TaskKind::Receive;
    bool waitsOutside = sample.begin == sample.end || isReceive;
    if (sample.begin == sample.end) {
      if (!beginning) {
        beginning = uint32_t(unit.references.size());
        unit.references.push_back({std::nullopt, 0});
      }
      unit.awaited.push_back(reference + *beginning);
    }
    // What an earlier unit has run on the task's lane is long over where the task also waits for one of its own unit
    // that takes time there.
    std::pair<uint64_t, unsigned> lane = store.getLaneKey(sample.facts);
    bool isBehindOwn = false;
    auto isOutside = [&](uint64_t id) { return id < placed.base; };
    bool mayBeBehindOwn =
        !isReceive && std::any_of(awaited.begin() + sample.begin, awaited.begin() + sample.end, isOutside);
    for (size_t i = sample.begin; i < sample.end && mayBeBehindOwn; ++i)
      if (awaited[i] >= placed.base) {
        const Sample &before = samples[awaited[i] - placed.base];
        isBehindOwn |= before.kind != TaskKind::Receive && store.getLaneKey(before.facts) == lane &&
                       store.getDuration(before.facts) > 0;
      }
    for (size_t i = sample.begin; i < sample.end; ++i) {
      uint64_t id = awaited[i];
      if (id >= placed.base) {
        unit.awaited.push_back(uint32_t(id - placed.base));
        continue;
      }
      if (isBehindOwn) {
        uint32_t other = uint32_t(findUnit(id));
        bool isOver = isOnLane(id, lane);
        laneChecks.push_back({{other, uint32_t(id - bases[other])}, lane, isOver});
        if (isOver)
          continue;
      }
      waitsOutside = true;
      refer(id);
    }
    if (waitsOutside)
      unit.waitsOutside.push_back(offset);
    unit.ends.push_back(uint32_t(unit.awaited.size()));
    unit.facts.push_back(sample.facts);
    unit.durations.push_back(store.getDuration(sample.facts));
  }
}

/// Whether a task of an earlier unit is on a lane.
bool UnitCompiler::isOnLane(uint64_t id, std::pair<uint64_t, unsigned> lane) const {
  size_t number = findUnit(id);
  uint32_t of = compiled[number]->facts[id - bases[number]];
  return store.getFacts(of).kind != TaskKind::Receive && store.getLaneKey(of) == lane;
}

void UnitCompiler::noteEnds(CompiledUnit &unit, const PlacedUnit &placed) {
  for (std::optional<uint64_t> end : tasks.getChains())
    unit.chains.push_back(end >= placed.base && end ? std::optional(*end - placed.base) : std::nullopt);
  if (std::optional<uint64_t> loop = tasks.getWorkBeforeLoop(); loop && *loop >= placed.base)
    unit.workBeforeLoop = *loop - placed.base;
}
