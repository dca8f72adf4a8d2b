//===- UnitCompiler.cpp - which units have the same tasks -----------------===//
#include "UnitCompiler.h"
#include "MachinePricer.h"
#include "stage/Tasks/RankSlots.h"
#include "stage/Time/StepTime.h"

using namespace stage;

/// Of a unit. Behind that are references, while a unit is compiled.
constexpr uint32_t maxTasks = uint32_t(1) << 31;

UnitCompiler::UnitCompiler(Connections &connections, UnitStore &store, const TaskOptions &options, unsigned classNumber,
                           DiagnosticEngine &diags)
    : connections(connections), store(store), classNumber(classNumber),
      rank(connections.classes.getRepresentative(classNumber)),
      sizesOf(store.findSizes(classNumber, connections.classes.describe(classNumber))),
      tasks(connections.program, connections.groups, options, connections.classes.describe(classNumber), diags,
            &connections.costs, connections.kernels),
      slowness(tasks.getSlowness()) {
  llvm::DenseMap<std::pair<const TaskLayout *, const TaskLayout *>, uint32_t> numbers;
  for (unsigned number = 0; number < tasks.getUnits().size(); ++number) {
    const PlacedUnit &unit = tasks.getUnits()[number];
    if (unit.placeInPair)
      continue;
    firstUnits.push_back(number);
    bases.push_back(unit.base);
    std::pair layouts(unit.layout, unit.pair ? tasks.getUnits()[number + 1].layout : nullptr);
    templates.push_back(numbers.try_emplace(layouts, uint32_t(numbers.size())).first->second);
  }
  described.resize(numbers.size());
}

llvm::SmallVector<const PlacedUnit *, 2> UnitCompiler::listPlaced(size_t unit) const {
  const PlacedUnit &first = tasks.getUnits()[firstUnits[unit]];
  llvm::SmallVector<const PlacedUnit *, 2> placed = {&first};
  if (first.pair)
    placed.push_back(&tasks.getUnits()[firstUnits[unit] + 1]);
  return placed;
}

std::array<uint32_t, 2> UnitCompiler::listMicrobatches(size_t unit) const {
  auto placed = listPlaced(unit);
  return {placed.front()->microbatch, placed.back()->microbatch};
}

unsigned UnitCompiler::getPart(size_t unit, uint64_t id) const {
  const PlacedUnit &first = tasks.getUnits()[firstUnits[unit]];
  return first.pair ? first.pair->find(id - first.base).unit : 0;
}

/// Of the template of a unit, or of both templates of a pair.
void UnitCompiler::describe(unsigned number) {
  std::optional<ClassTemplate> &description = described[templates[number]];
  if (description)
    return;
  auto placed = listPlaced(number);
  description = store.describe(classNumber, sizesOf, tasks, *placed.front());
  if (placed.size() > 1)
    description = store.pairUp(*description, store.describe(classNumber, sizesOf, tasks, *placed.back()));
}

UnitCompiler::Relations UnitCompiler::listRelations(unsigned number) {
  auto placed = listPlaced(number);
  Relations relations;
  auto addTask = [&](std::optional<uint64_t> id) {
    if (!id)
      return relations.list.push_back({});
    uint32_t other = *id >= bases[number - 1] ? number - 1 : uint32_t(findUnit(*id));
    relations.list.push_back({other, uint32_t(*id - bases[other])});
  };
  llvm::for_each(tasks.listEnds(firstUnits[number]), addTask);
  relations.numEnds = uint32_t(relations.list.size());
  auto addUnit = [&](const PlacedUnit *other) {
    UnitRelation &relation = relations.list.emplace_back();
    if (other && other->getNumIds() && other->base == bases[number])
      relation.part = UnitRelation::own;
    else if (other && other->getNumIds())
      relation = {uint32_t(findUnit(other->base)), UnitRelation::none, other->placeInPair};
  };
  // Those whose values it may use, and those that have sampled its tokens.
  llvm::SmallVector<const PlacedUnit *, 8> open(placed.begin(), placed.end()), seen;
  while (!open.empty()) {
    const PlacedUnit *next = open.pop_back_val();
    for (const PlacedUnit *giver : {next->giver, next->previous, next->feeder}) {
      addUnit(giver);
      bool isNew = giver && !llvm::is_contained(seen, giver);
      relations.ways.push_back(isNew);
      if (isNew) {
        seen.push_back(giver);
        open.push_back(giver);
      }
    }
  }
  addUnit(placed.front()->updates);
  if (store.asksForSums(getDescription(number).alike)) {
    auto latest = tasks.getLatestBackwards();
    relations.numLatest = uint32_t(latest.size());
    llvm::for_each(latest, addUnit);
  }
  for (unsigned each = 0; each < placed.size(); ++each) {
    auto awaitedUnits = tasks.getAwaitedUnits(firstUnits[number] + each);
    relations.isKnown &= awaitedUnits.has_value();
    relations.hasEdges |= !awaitedUnits || !awaitedUnits->empty();
    if (awaitedUnits)
      llvm::for_each(*awaitedUnits, addUnit);
  }
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
  Key key = {getDescription(number).alike, relations.numLatest, uint32_t(related.size())};
  key.reserve(key.size() + 2 + related.size() + 5 * relations.list.size());
  for (const PlacedUnit *unit : listPlaced(number))
    key.push_back(connections.program.graph->pipeline.environments.getAlike(unit->environment));
  for (uint32_t other : related)
    key.push_back(getDescription(other).alike);
  for (const UnitRelation &relation : relations.list) {
    bool isAbsent = relation.unit == UnitRelation::none;
    key.push_back(isAbsent ? UnitRelation::none
                           : uint32_t(llvm::lower_bound(related, relation.unit) - related.begin()));
    key.push_back(relation.task);
    key.push_back(relation.part);
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

/// What units have in common that may be of one pattern.
UnitCompiler::Key UnitCompiler::makeForm(unsigned number, const Relations &relations) const {
  Key form = {getDescription(number).alike, relations.numLatest};
  for (const PlacedUnit *unit : listPlaced(number)) {
    form.push_back(connections.program.graph->pipeline.environments.getAlike(unit->environment));
    form.push_back(tasks.getStreamOfLoad(*unit).value_or(UnitRelation::none));
  }
  llvm::append_range(form, relations.ways);
  for (const UnitRelation &relation : llvm::drop_begin(relations.list, relations.numEnds)) {
    form.push_back(relation.unit == UnitRelation::none ? UnitRelation::none : getDescription(relation.unit).alike);
    form.push_back(relation.part);
  }
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
  auto &ofForm = store.patterns[makeForm(number, relations)];
  for (const std::unique_ptr<UnitPattern> &pattern : ofForm)
    if (std::unique_ptr<CompiledUnit> unit = instantiate(*pattern, relations, related, getDescription(number)))
      return skipAs(*(store.kinds[std::move(key)] = std::move(unit)));
  bool isExplained = relations.isKnown;
  std::unique_ptr<UnitPattern> pattern = make(number, relations, isExplained);
  if (!pattern)
    return nullptr;
  related = listRelated(relations);
  std::unique_ptr<CompiledUnit> unit = instantiate(*pattern, relations, related, getDescription(number));
  CompiledUnit *made = unit.get();
  compiled.push_back(made);
  if (isExplained) {
    store.kinds[std::move(key)] = std::move(unit);
    ofForm.push_back(std::move(pattern));
  } else {
    others.push_back(std::move(unit));
  }
  return made;
}

/// Null: where relations lead does not tell what the tasks wait for.
std::unique_ptr<CompiledUnit> UnitCompiler::instantiate(UnitPattern &pattern, const Relations &relations,
                                                        llvm::ArrayRef<uint32_t> related,
                                                        const ClassTemplate &description) {
  auto unit = std::make_unique<CompiledUnit>();
  auto isOnLane = [&](UnitRelation other, const UnitPattern::PatternTask &task) {
    uint32_t of = compiled[other.unit]->facts[other.task];
    return store.getFacts(of).kind != TaskKind::Receive && store.getLaneKey(of) == store.getLaneKey(task.facts);
  };
  if (!pattern.refer(relations.list, related, isOnLane, *unit))
    return nullptr;
  uint32_t numReferences = uint32_t(unit->references.size());
  auto placeReceived = [&](size_t numReceived) { // they stand behind the references
    for (uint32_t &place : unit->awaited)
      place += place >= numReferences ? uint32_t(numReceived) : 0;
  };
  if (!pattern.instances.empty())
    placeReceived(pattern.instances.front()->received.size());
  auto isAlike = [&](const CompiledUnit *other) {
    return other->awaited == unit->awaited && other->ends == unit->ends && other->waitsOutside == unit->waitsOutside &&
           std::equal(other->references.begin(), other->references.end(), unit->references.begin(),
                      unit->references.end(),
                      [](const auto &a, const auto &b) { return a.unit.has_value() == b.unit.has_value(); });
  };
  if (auto known = llvm::find_if(pattern.instances, isAlike); known != pattern.instances.end()) {
    std::vector<CompiledUnit::Reference> references = std::move(unit->references);
    *unit = **known;
    unit->references = std::move(references);
    return unit;
  }
  for (const UnitPattern::PatternTask &task : pattern.tasks) {
    unit->facts.push_back(task.facts);
    unit->durations.push_back(store.getDuration(task.facts));
  }
  unit->chains = pattern.chains;
  unit->workBeforeLoop = pattern.workBeforeLoop;
  unit->entersRepeatFirst = pattern.entersRepeatFirst;
  unit->numPermutes = pattern.numPermutes;
  connect(*unit, pattern, description);
  if (pattern.instances.empty())
    placeReceived(unit->received.size());
  order(*unit);
  listEvents(*unit, pattern);
  if (!unit->isWhole)
    listLanes(*unit);
  pattern.instances.push_back(unit.get());
  return unit;
}

void UnitCompiler::finish() {
  tasks.forgetUnits();
  firstUnits = {};
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
  std::optional<uint64_t> loop =
      unit.entersRepeatFirst ? tasks.getChains()[ClassTasks::computation] : tasks.getWorkBeforeLoop();
  bool isPair = tasks.getUnits()[firstUnits[number]].pair;
  tasks.skipUnit(firstUnits[number], after);
  if (isPair)
    tasks.skipUnit(firstUnits[number] + 1, after);
  tasks.setWorkBeforeLoop(unit.workBeforeLoop ? base + *unit.workBeforeLoop : loop);
}

/// Keeps a task of the unit that is made. False where it has no price.
bool UnitCompiler::take(const Task &task, unsigned unit, uint64_t firstPermute) {
  ++numMade;
  while (slots.size() < tasks.getSlots().size()) {
    const RankSlot &slot = tasks.getSlots()[slots.size()];
    bool isSize = slot.kind == RankSlot::Kind::Size;
    slots.push_back(isSize ? 0 : resolve(connections.program, connections.groups, slot, rank));
  }
  if (task.flops.isSlot() || task.bytes.isSlot() || task.tag.isSlot())
    return false;
  Sample sample;
  sample.task.kind = task.kind;
  sample.task.part = getPart(unit, task.id);
  GroupPlace own = 1;
  const GroupPlace *place = &own;
  if (task.kind == TaskKind::Collective) {
    if (!task.group.isSlot())
      return false;
    const RankSlot &slot = tasks.getSlots()[task.group.getSlot()];
    sample.task.connection = connections.findMeeting(classNumber, task, slot, task.group.resolve(slots));
    place = &connections.getMeeting(sample.task.connection).place;
  } else if (task.isMessage()) {
    const RankSlot &slot = tasks.getSlots()[task.peer.getSlot()];
    if (slot.kind != RankSlot::Kind::Stage && slot.kind != RankSlot::Kind::Neighbour)
      return false;
    int64_t peer = int64_t(task.peer.resolve(slots));
    sample.task.isPermute = slot.kind == RankSlot::Kind::Neighbour;
    if (sample.task.isPermute) {
      sample.task.connection = connections.findChannel(classNumber, task.kind == TaskKind::Send, slot, uint64_t(peer));
      sample.task.tag = task.tag.resolve({}) - firstPermute;
    }
    own = connections.machine.findPlace({int64_t(connections.program.firstRank) + rank, peer});
  } else if (task.isWait) {
    own = connections.machine.findPlace(
        {int64_t(connections.program.firstRank) + rank, int64_t(task.peer.resolve(slots))});
  }
  std::optional<uint32_t> number = store.findFacts(task, tasks.getEnvironment(), *place, sizesOf, slowness);
  if (!number)
    return false;
  sample.task.facts = *number;
  sample.begin = awaited.size();
  awaited.insert(awaited.end(), task.data.begin(), task.data.end());
  sample.dataEnd = awaited.size();
  awaited.insert(awaited.end(), task.order.begin(), task.order.end());
  sample.end = awaited.size();
  samples[task.id - bases[unit]] = sample;
  return true;
}

/// Adds the tasks of the rounds between the second and the last one.
bool UnitCompiler::repeat(const ClassTasks::Rounds &rounds, uint64_t base) {
  for (uint64_t place = 0; place < rounds.tasks; ++place) {
    const Sample first = samples[rounds.first - base + place],
                 second = samples[rounds.first - base + rounds.tasks + place];
    if (first.task.facts != second.task.facts || first.task.connection != second.task.connection)
      return false; // not the same op
    for (uint64_t round = 2; round + 1 < uint64_t(rounds.count); ++round) {
      Sample &sample = samples[rounds.first - base + round * rounds.tasks + place];
      sample = second;
      sample.task.tag += (second.task.tag - first.task.tag) * (round - 1);
      sample.begin = awaited.size();
      sample.dataEnd = sample.begin + second.dataEnd - second.begin;
      for (size_t i = 0; i < second.end - second.begin; ++i) {
        uint64_t before = awaited[first.begin + i], id = awaited[second.begin + i];
        awaited.push_back(id + (id - before) * (round - 1));
      }
      sample.end = awaited.size();
    }
  }
  return true;
}

/// Null: tasks are of another form, or have no price. Relations are added that lead to units which no other one leads
/// to; then the unit is not explained.
std::unique_ptr<UnitPattern> UnitCompiler::make(unsigned number, Relations &relations, bool &isExplained) {
  uint64_t base = bases[number], numTasks = tasks.getUnits()[firstUnits[number]].getNumIds();
  if (numTasks >= maxTasks)
    return nullptr;
  samples.assign(numTasks, Sample());
  awaited.clear();
  bool isGood = true;
  uint64_t firstPermute = tasks.getNumIssued().back();
  ClassTasks::Left left = tasks.makeRounds(
      firstUnits[number], [&](const Task &task) { isGood = isGood && take(task, number, firstPermute); },
      [&](const ClassTasks::Rounds &rounds) { isGood = isGood && repeat(rounds, base); });
  if (!isGood)
    return nullptr;
  store.noteSums(getDescription(number).alike, left.asksForSums);
  auto pattern = std::make_unique<UnitPattern>();
  auto getOwn = [&](std::optional<uint64_t> id) {
    bool isOwn = id && *id < ClassTasks::firstName && *id >= base;
    return isOwn ? std::optional(*id - base) : std::nullopt;
  };
  for (std::optional<uint64_t> end : left.chains)
    pattern->chains.push_back(getOwn(end));
  pattern->workBeforeLoop = getOwn(left.workBeforeLoop);
  pattern->entersRepeatFirst = left.workBeforeLoop == ClassTasks::firstName + ClassTasks::computation;
  pattern->numPermutes = tasks.getNumIssued().back() - firstPermute;
  listAwaited(number, relations, *pattern, isExplained);
  return pattern;
}

/// Puts relations in place of names, and of the ids of earlier units.
void UnitCompiler::listAwaited(unsigned number, Relations &relations, UnitPattern &pattern, bool &isExplained) {
  const uint64_t base = bases[number];
  llvm::SmallDenseMap<uint32_t, uint32_t, 16> sources; // by relation, and behind them by unit
  auto findSource = [&](uint32_t key, llvm::function_ref<UnitPattern::Source()> list) {
    auto [known, isNew] = sources.try_emplace(key, uint32_t(pattern.sources.size()));
    if (isNew)
      pattern.sources.push_back(list());
    return known->second;
  };
  auto listOfUnit = [&](uint32_t unit, uint32_t part) {
    UnitPattern::Source source;
    for (uint32_t i = relations.numEnds; i < relations.list.size(); ++i)
      if (relations.list[i].unit == unit && relations.list[i].part == part)
        source.push_back(i);
    if (source.empty()) {
      isExplained = false;
      source.push_back(uint32_t(relations.list.size()));
      relations.list.push_back({unit, UnitRelation::none, part});
    }
    return source;
  };
  auto translate = [&](uint64_t id) -> UnitPattern::Awaited {
    if (id >= ClassTasks::firstName) {
      uint32_t number = uint32_t(id - ClassTasks::firstName);
      return {findSource(number, [&] { return UnitPattern::Source{number}; }), UnitRelation::none};
    }
    if (id >= base)
      return {UnitPattern::Awaited::own, uint32_t(id - base)};
    uint32_t unit = uint32_t(findUnit(id)), part = getPart(unit, id);
    return {findSource(relations.numEnds + 2 * unit + part, [&] { return listOfUnit(unit, part); }),
            uint32_t(id - bases[unit])};
  };
  pattern.tasks.reserve(samples.size());
  pattern.awaited.reserve(awaited.size());
  for (const Sample &sample : samples) {
    UnitPattern::PatternTask task = sample.task;
    bool waitsOutside = false;
    for (size_t i = sample.begin; i < sample.end; ++i) {
      if (i == sample.dataEnd)
        task.dataEnd = uint32_t(pattern.awaited.size());
      pattern.awaited.push_back(translate(awaited[i]));
      waitsOutside |= pattern.awaited.back().source != UnitPattern::Awaited::own;
    }
    task.end = uint32_t(pattern.awaited.size());
    if (sample.dataEnd == sample.end)
      task.dataEnd = task.end;
    for (size_t i = sample.begin; i < sample.end && waitsOutside && task.kind != TaskKind::Receive; ++i)
      if (awaited[i] >= base && awaited[i] < ClassTasks::firstName) {
        const UnitPattern::PatternTask &before = samples[awaited[i] - base].task;
        task.isBehindOwn |= before.kind != TaskKind::Receive &&
                            store.getLaneKey(before.facts) == store.getLaneKey(task.facts) &&
                            store.getDuration(before.facts) > 0;
      }
    pattern.tasks.push_back(task);
  }
}
