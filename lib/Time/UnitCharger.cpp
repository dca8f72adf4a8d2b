//===- UnitCharger.cpp - what units take beside each other ----------------===//
#include "UnitCharger.h"

using namespace stage;

ChargeStore::ChargeStore(const UnitStore &store, const Runtime &runtime)
    : store(store), runtime(runtime), hasNeighbours(runtime.taxOfCommunication.num || mayShare()) {
  findQueues();
}

/// Two lanes communicate on one level.
bool ChargeStore::mayShare() const {
  std::map<unsigned, unsigned> lanes; // by level
  for (uint32_t number = 0; number < store.getNumFacts(); ++number) {
    const TaskFacts &facts = store.getFacts(number);
    if (facts.kind != TaskKind::Collective && facts.kind != TaskKind::Send)
      continue;
    unsigned lane = store.getLane(number);
    if (lanes.try_emplace(facts.place.getLevel(), lane).first->second != lane)
      return true;
  }
  return false;
}

/// Those that are of some tasks.
void ChargeStore::findQueues() {
  queueOf.resize(store.getNumFacts());
  for (TaxQueue &queue : makeTaxQueues(store.getNumLanes(), runtime)) {
    bool isUsed = false;
    for (uint32_t number = 0; number < store.getNumFacts(); ++number)
      if (queue.takes(store.getFacts(number).kind, store.getLane(number))) {
        queueOf[number] = unsigned(noQueues.size());
        isUsed = true;
      }
    if (isUsed)
      noQueues.push_back(std::move(queue));
  }
}

UnitCharger::UnitCharger(UnitList &units, ChargeStore &known)
    : units(units), known(known), store(known.store), runtime(known.runtime) {}

void UnitCharger::charge() {
  bool hasQueues = !known.noQueues.empty();
  for (size_t number = 0; number < units.size() && hasQueues; ++number) {
    auto [kind, isNew] = known.queuedOfKind.try_emplace(units[number].unit);
    if (isNew)
      kind->second = findQueued(number);
    queued.push_back(&kind->second);
  }
  findLastKernel();
  untaxed.reserve(units.size());
  for (size_t number = 0; number < units.size(); ++number) {
    untaxed.push_back(&findUntaxed(number));
    units[number].charges = untaxed.back()->charges;
  }
  isTogether = hasQueues && !addTaxes();
  if (isTogether)
    chargeTogether();
}

bool UnitCharger::isKernel(const CompiledUnit &unit, uint32_t task) const {
  return unit.durations[task] && store.getFacts(unit.facts[task]).isKernel;
}

/// The unit with the last kernel of all, which the host's part of a step lengthens.
void UnitCharger::findLastKernel() {
  lastWithKernel = units.size();
  for (size_t number = units.size(); runtime.stepHost && number-- > 0 && lastWithKernel == units.size();)
    for (uint32_t task = 0; task < units[number].unit->getNumTasks(); ++task)
      if (isKernel(*units[number].unit, task))
        lastWithKernel = number;
}

/// The tasks of units for taxes, as far as these units wait for each other. `numAwaited`: by task, the compute tasks
/// for which it waits, itself among them.
TaxedTasks UnitCharger::makeTaxedTasks(size_t first, size_t end, std::vector<uint32_t> &numAwaited) const {
  size_t numQueues = known.noQueues.size(), base = 0;
  TaxedTasks result;
  result.waiting.resize(numQueues);
  std::vector<uint32_t> reach; // by task and queue: tasks of the queue for which it waits, itself among them
  std::vector<size_t> bases;
  for (size_t number = first; number < end; ++number) {
    const CompiledUnit &unit = *units[number].unit;
    llvm::ArrayRef<uint32_t> related = units.getRelated(number);
    bases.push_back(base);
    numAwaited.resize(base + unit.getNumTasks());
    reach.resize(numAwaited.size() * numQueues);
    for (size_t task = 0, id = base; task < unit.getNumTasks(); ++task, ++id) {
      uint32_t *own = reach.data() + id * numQueues;
      for (uint32_t place : unit.getAwaited(uint32_t(task))) {
        std::optional<size_t> before = findTask(unit, related, place, first, bases);
        if (!before)
          continue;
        numAwaited[id] = std::max(numAwaited[id], numAwaited[*before]);
        for (size_t queue = 0; queue < numQueues; ++queue)
          own[queue] = std::max(own[queue], reach[*before * numQueues + queue]);
      }
      uint32_t facts = unit.facts[task];
      if (store.getFacts(facts).isTaxed) {
        result.computes.push_back(unsigned(id));
        result.awaited.insert(result.awaited.end(), own, own + numQueues);
        numAwaited[id] = uint32_t(result.computes.size());
      } else if (std::optional<unsigned> queue = known.queueOf[facts]) {
        result.waiting[*queue].push_back({unsigned(id), numAwaited[id]});
        own[*queue] = uint32_t(result.waiting[*queue].size());
      }
    }
    base += unit.getNumTasks();
  }
  return result;
}

UnitCharger::Queued UnitCharger::findQueued(size_t number) const {
  Queued result;
  result.own = makeTaxedTasks(number, number + 1, result.numAwaited);
  const CompiledUnit &unit = *units[number].unit;
  for (const std::vector<TaxedTasks::Waiting> &waiting : result.own.waiting) {
    auto &references = result.early.emplace_back();
    if (!waiting.empty() && !waiting.front().before)
      references = listAwaited(unit, waiting.front().id);
  }
  return result;
}

/// The references for which a task waits, or others for which it waits do.
std::vector<CompiledUnit::Reference> UnitCharger::listAwaited(const CompiledUnit &unit, uint32_t task) {
  std::vector<CompiledUnit::Reference> references;
  std::vector<uint32_t> open = {task};
  llvm::DenseSet<uint32_t> seen;
  while (!open.empty()) {
    task = open.back();
    open.pop_back();
    for (uint32_t place : unit.getAwaited(task))
      if (!seen.insert(place).second)
        continue;
      else if (place >= unit.getFirstTask())
        open.push_back(place - unit.getFirstTask());
      else if (unit.references[place].unit)
        references.push_back(unit.references[place]);
  }
  return references;
}

/// The task of a place, counted from the first task of the unit `first` on; `bases`: of the units from that one on.
std::optional<size_t> UnitCharger::findTask(const CompiledUnit &unit, llvm::ArrayRef<uint32_t> related, uint32_t place,
                                            size_t first, llvm::ArrayRef<size_t> bases) {
  if (place >= unit.getFirstTask())
    return bases.back() + place - unit.getFirstTask();
  const CompiledUnit::Reference &reference = unit.references[place];
  if (!reference.unit || related[*reference.unit] < first)
    return std::nullopt;
  return bases[related[*reference.unit] - first] + reference.offset;
}

/// The tasks of units, as far as these wait for each other.
TimedTasks UnitCharger::makeTasks(size_t first, size_t end) const {
  TimedTasks tasks;
  std::vector<size_t> bases;
  for (size_t number = first; number < end; ++number) {
    const CompiledUnit &unit = *units[number].unit;
    llvm::ArrayRef<uint32_t> related = units.getRelated(number);
    bases.push_back(tasks.size());
    for (uint32_t task = 0; task < unit.getNumTasks(); ++task) {
      const TaskFacts &facts = store.getFacts(unit.facts[task]);
      TimedTask &timed = tasks.add();
      timed.kind = facts.kind;
      timed.isTaxed = facts.isTaxed;
      timed.isKernel = facts.isKernel;
      timed.lane = store.getLane(unit.facts[task]);
      timed.unit = units[number].place - units[first].place; // pairs, one behind the other, are no neighbours
      timed.level = facts.place.getLevel();
      timed.alone = unit.durations[task];
      for (uint32_t place : unit.getAwaited(task))
        if (std::optional<size_t> before = findTask(unit, related, place, first, bases))
          tasks.wait(*before);
    }
  }
  return tasks;
}

/// What tells units apart, as far as they have to do with each other, for one of them.
void UnitCharger::addUnits(size_t number, size_t first, size_t end) {
  key.push_back(number - first);
  key.push_back(end - first);
  key.push_back(lastWithKernel - first < end - first); // among them
  for (size_t each = first; each < end; ++each) {
    bool isUntaxed = untaxed.size() == units.size();
    key.push_back(uint64_t(isUntaxed ? static_cast<const void *>(untaxed[each]) : units[each].unit));
    size_t place = key.size();
    key.push_back(0);
    for (uint32_t related : units.getRelated(each))
      if (related >= first) {
        key.push_back(each - related);
        ++key[place];
      }
  }
}

/// Of what was found for the tasks of some units that of one.
template <typename T>
std::vector<T> UnitCharger::takeUnit(const std::vector<T> &ofTasks, size_t number, size_t first) const {
  auto begin = ofTasks.begin();
  for (; first < number; ++first)
    begin += ptrdiff_t(units[first].unit->getNumTasks());
  return {begin, begin + ptrdiff_t(units[number].unit->getNumTasks())};
}

const UnitCharger::Untaxed &UnitCharger::findUntaxed(size_t number) {
  size_t first = known.hasNeighbours && number ? number - 1 : number;
  size_t end = known.hasNeighbours ? std::min(number + 2, units.size()) : number + 1;
  key.clear();
  addUnits(number, first, end);
  std::unique_ptr<Untaxed> &found = known.shared[key];
  if (!found)
    found = std::make_unique<Untaxed>(makeUntaxed(number, first, end));
  return *found;
}

UnitCharger::Untaxed UnitCharger::makeUntaxed(size_t number, size_t first, size_t end) const {
  Untaxed result;
  CompiledUnit &unit = *units[number].unit;
  if (known.hasNeighbours) {
    TimedTasks tasks = makeTasks(first, end);
    Runtime untaxing;
    untaxing.launch = runtime.launch;
    untaxing.stepHost = lastWithKernel >= first && lastWithKernel < end ? runtime.stepHost : 0;
    result.surcharges = takeUnit(findSurcharges(tasks, store.getNumLanes(), untaxing), number, first);
    result.taken = unit.addSurcharges(result.surcharges);
    if (runtime.taxOfCommunication.num) {
      untaxing.taxOfCommunication = runtime.taxOfCommunication;
      result.surcharges = takeUnit(findSurcharges(tasks, store.getNumLanes(), untaxing), number, first);
    }
  } else {
    result.surcharges.resize(unit.getNumTasks());
    LaunchCount count;
    for (uint32_t task = 0; task < unit.getNumTasks(); ++task)
      if (isKernel(unit, task))
        count.add(task, unit.durations[task]);
    if (auto more = count.find(runtime.launch, number == lastWithKernel ? runtime.stepHost : 0))
      result.surcharges[more->first].launch = more->second;
    result.taken = unit.addSurcharges(result.surcharges);
  }
  for (uint32_t task = 0; task < unit.getNumTasks(); ++task)
    if (store.getFacts(unit.facts[task]).isTaxed)
      result.compute += std::min(result.taken[task], maxTicks - result.compute);
  if (known.noQueues.empty())
    result.charges = &unit.findCharges(result.surcharges);
  return result;
}

/// The first unit that may have computed when the first task of a queue comes that waits for references.
size_t UnitCharger::findArrival(size_t number, llvm::ArrayRef<CompiledUnit::Reference> references) const {
  size_t arrival = 0;
  for (const CompiledUnit::Reference &reference : references) {
    size_t other = units.getRelated(number)[*reference.unit];
    const Queued &itsQueued = *queued[other];
    if (uint32_t count = itsQueued.numAwaited[reference.offset])
      arrival = std::max(arrival, count == itsQueued.own.computes.size() ? other + 1 : other);
  }
  return arrival;
}

void UnitCharger::listQueues() {
  for (const TaxQueue &empty : known.noQueues) {
    size_t place = queues.size(), arrival = 0;
    QueueOfClass &queue = queues.emplace_back(QueueOfClass{empty, {0}, {}});
    for (size_t number = 0; number < units.size(); ++number) {
      const Queued &own = *queued[number];
      queue.counts.push_back(queue.counts.back() + int64_t(own.own.waiting[place].size()));
      // What is behind another task on its lane comes behind it.
      if (!own.own.waiting[place].empty())
        arrival = std::max(arrival, own.early[place] ? findArrival(number, *own.early[place]) : number);
      queue.arrivals.push_back(arrival);
    }
  }
}

/// The units of tasks that are left in queues or come to them while a unit computes, itself among them.
std::pair<size_t, size_t> UnitCharger::findWindow(size_t number) {
  size_t first = number, end = number + 1;
  for (QueueOfClass &queue : queues) {
    const TaxQueue &left = queue.left;
    int64_t oldest = left.entries.empty() ? left.next : left.entries.front().number;
    if (oldest < queue.counts[number])
      first = std::min(first, size_t(llvm::upper_bound(queue.counts, oldest) - queue.counts.begin() - 1));
    while (queue.behind < units.size() && queue.arrivals[queue.behind] <= number)
      ++queue.behind;
    size_t last = queue.behind;
    if (left.next < queue.counts[last]) {
      // Those at the end may have no tasks of the queue.
      while (queue.counts[last - 1] == queue.counts[last])
        --last;
      end = std::max(end, last);
    }
  }
  return {first, end};
}

/// Appends what tells apart what is in the queues, as far as a unit can use it up or wait for it.
void UnitCharger::addQueues(size_t number, size_t end) {
  for (QueueOfClass &queue : queues) {
    const TaxQueue &left = queue.left;
    int64_t base = queue.counts[number], behind = queue.counts[number + 1];
    key.push_back(left.next < queue.counts[end] ? uint64_t(left.next - base) : ~uint64_t(0));
    size_t place = key.size();
    key.push_back(0);
    Ticks untouched = untaxed[number]->compute;
    queue.numRelevant = 0;
    for (const TaxQueue::Entry &entry : left.entries) {
      if (entry.number >= behind && untouched <= 0)
        break; // it is of a unit behind, and there are enough before it
      ++queue.numRelevant;
      if (entry.number < behind)
        key.push_back(uint64_t(entry.number - base));
      else
        untouched -= entry.rest;
      key.push_back(uint64_t(entry.rest));
    }
    key[place] = queue.numRelevant;
  }
}

/// False where all units had better be looked at together.
bool UnitCharger::addTaxes() {
  listQueues();
  size_t numTasks = 0, spent = 0;
  for (size_t number = 0; number < units.size(); ++number)
    numTasks += units[number].unit->getNumTasks();
  for (size_t number = 0; number < units.size(); ++number) {
    auto [first, end] = findWindow(number);
    spent += end - first;
    if (spent > numTasks + 4 * units.size())
      return false;
    key.clear();
    addUnits(number, first, end);
    addQueues(number, end);
    spent += key.size() / 16;
    std::unique_ptr<Taxed> &found = known.taxed[key];
    if (!found) {
      for (size_t each = first; each < end; ++each)
        spent += units[each].unit->getNumTasks();
      found = std::make_unique<Taxed>(makeTaxed(number, first, end));
    }
    units[number].charges = found->charges;
    for (auto [queue, change] : llvm::zip(queues, found->changes))
      apply(change, queue);
  }
  return true;
}

UnitCharger::Taxed UnitCharger::makeTaxed(size_t number, size_t first, size_t end) const {
  std::vector<TaxQueue> before;
  for (const QueueOfClass &queue : queues) {
    // Counted among the tasks that are made.
    TaxQueue &each = before.emplace_back(TaxQueue{queue.left.kind, queue.left.lane});
    each.next = queue.left.next - queue.counts[first];
    for (size_t place = 0; place < queue.numRelevant; ++place)
      each.entries.push_back({queue.left.entries[place].number - queue.counts[first], queue.left.entries[place].rest});
  }
  std::vector<TaxQueue> after = before;
  std::vector<Surcharge> surcharges = untaxed[number]->surcharges;
  auto pay = [&](size_t task, Ticks tax) {
    surcharges[task].beside += std::min(tax, maxTicks - surcharges[task].beside);
  };
  if (end == first + 1) {
    const TaxedTasks &own = queued[number]->own;
    findTaxes(own, untaxed[number]->taken, 0, own.computes.size(), runtime, after,
              [&](unsigned id, Ticks tax) { pay(id, tax); });
  } else {
    std::vector<uint32_t> numAwaited;
    TaxedTasks tasks = makeTaxedTasks(first, end, numAwaited);
    std::vector<Ticks> taken;
    size_t firstCompute = 0, base = 0;
    for (size_t each = first; each < end; ++each) {
      llvm::append_range(taken, untaxed[each]->taken);
      firstCompute += each < number ? queued[each]->own.computes.size() : 0;
      base += each < number ? untaxed[each]->taken.size() : 0;
    }
    findTaxes(tasks, taken, firstCompute, firstCompute + queued[number]->own.computes.size(), runtime, after,
              [&](unsigned id, Ticks tax) { pay(id - base, tax); });
  }
  Taxed result{&units[number].unit->findCharges(std::move(surcharges)), {}};
  for (size_t place = 0; place < queues.size(); ++place) {
    QueueChange &change = result.changes.emplace_back();
    const auto &entries = after[place].entries;
    auto appended =
        llvm::find_if(entries, [&](const TaxQueue::Entry &entry) { return entry.number >= before[place].next; });
    change.numOver = before[place].entries.size() - size_t(appended - entries.begin());
    if (appended != entries.begin())
      change.rest = entries.front().rest;
    change.numPassed = after[place].next - before[place].next;
    for (; appended != entries.end(); ++appended)
      change.appended.push_back({appended->number - before[place].next, appended->rest});
  }
  return result;
}

void UnitCharger::apply(const QueueChange &change, QueueOfClass &queue) {
  TaxQueue &left = queue.left;
  left.entries.erase(left.entries.begin(), left.entries.begin() + ptrdiff_t(change.numOver));
  if (change.rest)
    left.entries.front().rest = *change.rest;
  for (const TaxQueue::Entry &entry : change.appended)
    left.entries.push_back({left.next + entry.number, entry.rest});
  left.next += change.numPassed;
}

void UnitCharger::chargeTogether() {
  untaxed.clear();
  std::vector<Surcharge> all = findSurcharges(makeTasks(0, units.size()), store.getNumLanes(), runtime);
  auto next = all.begin();
  for (size_t number = 0; number < units.size(); ++number) {
    auto end = next + ptrdiff_t(units[number].unit->getNumTasks());
    units[number].charges = &units[number].unit->findCharges({next, end});
    next = end;
  }
}
