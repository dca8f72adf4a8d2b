//===- CompiledCharges.cpp - what units that are placed wait for ----------===//
#include "CompiledWalk.h"

using namespace stage;

CompiledWalk::UnitView CompiledWalk::getNext(const ClassClock &clock) const {
  return {clock, *clock.unit, *clock.run, clock.placed.size(), clock.nextSenders.data()};
}

CompiledWalk::UnitView CompiledWalk::getView(const ClassClock &clock, size_t unit) const {
  const Placed &placed = clock.placed[unit];
  return {clock, *clock.units[unit].unit, *placed.run, unit, clock.senders.data() + placed.firstSender};
}

std::optional<ClassTask> CompiledWalk::getCause(const UnitView &view, unsigned classNumber, int32_t cause) const {
  if (cause == UnitRun::none)
    return std::nullopt;
  if (cause < UnitRun::none)
    return view.run.shared[size_t(-2 - cause)].second;
  uint32_t place = uint32_t(cause), firstTask = view.unit.getFirstTask(),
           firstMessage = uint32_t(view.unit.references.size());
  const UnitCompiler &compiler = view.clock.compiler;
  if (place >= firstTask)
    return ClassTask{classNumber, compiler.getBase(view.number) + place - firstTask};
  if (place >= firstMessage)
    return view.senders[place - firstMessage];
  const CompiledUnit::Reference &reference = view.unit.references[place];
  if (!reference.unit)
    return std::nullopt;
  return ClassTask{classNumber,
                   compiler.getBase(view.clock.units.getRelated(view.number)[*reference.unit]) + reference.offset};
}

TaskRun CompiledWalk::getRun(ClassTask task) const {
  const ClassClock &clock = clocks[task.classNumber];
  size_t number = clock.compiler.findUnit(task.id);
  bool isPlaced = number < clock.placed.size();
  UnitView view = isPlaced ? getView(clock, number) : getNext(clock);
  Ticks later = isPlaced ? clock.placed[number].later : 0;
  uint32_t offset = uint32_t(task.id - clock.compiler.getBase(number));
  return {&clock.compiler.getFacts(view.unit.facts[offset]), view.unit.getBegin(view.run, offset) + later,
          view.unit.getEnd(view.run, offset) + later, getCause(view, task.classNumber, view.run.causes[offset]),
          view.run.charges->getSurcharge(offset)};
}

/// What is charged for a unit whatever it waits for. Entries of one kind, and of tasks of one op, are one.
FixedEntries CompiledWalk::listFixed(const ClassClock &clock, const CompiledUnit &unit, const UnitRun &run) const {
  using Kind = AccountEntry::Kind;
  FixedEntries fixed;
  constexpr uint32_t absent = ~uint32_t(0);
  std::vector<uint32_t> known[unsigned(Kind::Wait)]; // by kind, and by facts or account
  auto add = [&](uint32_t task, Kind kind, uint32_t number, int64_t count, Ticks ticks) {
    std::vector<uint32_t> &places = known[unsigned(kind)];
    if (places.size() <= number)
      places.resize(number + 1, absent);
    uint32_t &place = places[number];
    if (place == absent) {
      place = uint32_t(fixed.entries.size());
      fixed.entries.push_back({task, {kind, number}});
    }
    fixed.entries[place].second.count += count;
    fixed.entries[place].second.ticks += ticks;
  };
  for (uint32_t task = 0; task < unit.getNumTasks(); ++task) {
    const TaskFacts &facts = clock.compiler.getFacts(unit.facts[task]);
    if (facts.kind == TaskKind::Collective || facts.kind == TaskKind::Send)
      add(task, Kind::Row, unit.facts[task], 1, unit.getEnd(run, task) - unit.getBegin(run, task));
    if (!facts.isTaxed)
      continue;
    fixed.taxed.push_back(task);
    Surcharge more = run.charges->getSurcharge(task);
    Ticks own = run.charges->durations[task] - more.launch - more.beside;
    if (facts.isWait && own)
      add(task, Kind::Charge, unit.facts[task], 0, own);
    else if (own)
      add(task, Kind::Compute, unsigned(TimeAccounts::getAccount(facts)), 0, own);
    for (auto [account, ticks] : {std::pair(TimeAccount::Host, more.launch), {TimeAccount::Overlap, more.beside}})
      if (ticks)
        add(task, Kind::Compute, unsigned(account), 0, ticks);
  }
  return fixed;
}

/// What is charged for a unit with this run, in the order of its tasks. What tasks take is the same in each run, but
/// for collectives of several classes.
void CompiledWalk::listEntries(ClassClock &clock, const CompiledUnit &unit, UnitRun &run) const {
  using Kind = AccountEntry::Kind;
  uint32_t firstTask = unit.getFirstTask();
  FixedEntries ofRun;
  FixedEntries &fixed = unit.shared.empty() ? clock.getCharges().fixed : ofRun;
  if (fixed.entries.empty() && fixed.taxed.empty())
    fixed = listFixed(clock, unit, run);
  constexpr uint32_t absent = ~uint32_t(0);
  std::vector<uint32_t> charged; // entries, by facts
  auto charge = [&](uint32_t number, Ticks ticks) {
    if (charged.size() <= number)
      charged.resize(number + 1, absent);
    uint32_t &place = charged[number];
    if (place == absent) {
      place = uint32_t(run.entries.size());
      run.entries.push_back({Kind::Charge, number});
    }
    run.entries[place].ticks += ticks;
  };
  auto isOwn = [&](int32_t cause) { // a task of the class
    return cause >= int32_t(firstTask) ||
           (cause >= 0 && uint32_t(cause) < unit.references.size() && unit.references[size_t(cause)].unit.has_value());
  };
  // As TimeAccounts::wait, as far as the unit goes.
  auto wait = [&](int32_t cause, Ticks begin, Ticks end) {
    while (begin < end) {
      if (cause < UnitRun::none || (cause >= 0 && uint32_t(cause) < firstTask && isOwn(cause))) {
        run.entries.push_back({Kind::Wait, 0, 0, 0, cause, begin, end});
        return;
      }
      if (!isOwn(cause)) {
        run.entries.push_back({Kind::Bubble, 0, 0, end - begin});
        return;
      }
      uint32_t task = uint32_t(cause) - firstTask;
      int32_t next = run.causes[task];
      if (next < UnitRun::none) {
        run.entries.push_back({Kind::Wait, 0, 0, 0, cause, begin, end});
        return;
      }
      Ticks from = isOwn(next) ? std::clamp(unit.getBegin(run, task), begin, end) : begin;
      charge(unit.facts[task], end - from);
      end = from;
      cause = next;
    }
  };
  auto nextFixed = fixed.entries.begin();
  auto addFixed = [&](uint32_t before) {
    for (; nextFixed != fixed.entries.end() && nextFixed->first < before; ++nextFixed)
      run.entries.push_back(nextFixed->second);
  };
  std::optional<Ticks> free;
  for (uint32_t task : fixed.taxed) {
    Ticks end = unit.getEnd(run, task), begin = end - run.charges->durations[task];
    if (!free || begin > *free) {
      addFixed(task);
      if (free)
        wait(run.causes[task], *free, begin);
      else
        run.entries.push_back({Kind::Wait, 0, 0, 0, run.causes[task], std::nullopt, begin});
    }
    free = end;
  }
  addFixed(unit.getNumTasks());
  run.free = free;
}

void CompiledWalk::place(ClassClock &clock, unsigned number, const UnitRun &run, Ticks later) {
  using Kind = AccountEntry::Kind;
  clock.placed.push_back({&run, later, uint32_t(clock.senders.size())});
  llvm::append_range(clock.senders, clock.nextSenders);
  UnitView view = getView(clock, clock.placed.size() - 1);
  for (const AccountEntry &entry : run.entries)
    switch (entry.kind) {
    case Kind::Compute:
      if (TimeAccount account = TimeAccount(entry.number); account == TimeAccount::Host)
        clock.accounts.launch(entry.ticks);
      else
        clock.accounts.get(account) += entry.ticks;
      break;
    case Kind::Row: {
      CommunicationTime &row = clock.accounts.getRow(*clock.accounts.findRow(clock.compiler.getFacts(entry.number)));
      row.count += entry.count;
      row.taken += entry.ticks;
      break;
    }
    case Kind::Charge:
      clock.accounts.charge(clock.compiler.getFacts(entry.number), entry.ticks);
      break;
    case Kind::Bubble:
      clock.accounts.get(TimeAccount::Bubble) += entry.ticks;
      break;
    case Kind::Wait:
      clock.accounts.wait(getCause(view, number, entry.cause), entry.begin ? *entry.begin + later : clock.free,
                          entry.end + later);
      break;
    }
  if (run.free)
    clock.free = *run.free + later;
}

StageTime CompiledWalk::takeAccounts(unsigned classNumber) {
  ClassClock &clock = clocks[classNumber];
  std::vector<std::pair<Ticks, uint64_t>> behind;
  for (size_t number = 0; number < clock.placed.size(); ++number)
    if (const Placed &placed = clock.placed[number]; placed.getLast() > clock.free)
      for (uint32_t task = 0; task < clock.units[number].unit->getNumTasks(); ++task)
        if (Ticks end = clock.getEnd(number, task); end > clock.free)
          behind.emplace_back(end, clock.compiler.getBase(number) + task);
  clock.accounts.finish(clock.free, std::move(behind), last);
  return clock.accounts.take();
}

std::optional<ClassTask> CompiledWalk::findLast() const {
  for (unsigned classNumber = 0; classNumber < clocks.size(); ++classNumber)
    for (size_t number = 0; number < clocks[classNumber].placed.size(); ++number)
      if (const Placed &placed = clocks[classNumber].placed[number]; placed.getLast() == last)
        for (uint32_t task = 0; task < clocks[classNumber].units[number].unit->getNumTasks(); ++task)
          if (clocks[classNumber].getEnd(number, task) == last)
            return ClassTask{classNumber, clocks[classNumber].compiler.getBase(number) + task};
  return std::nullopt;
}

/// From a task of a unit back to what is of another unit.
CompiledWalk::PathPart CompiledWalk::listPart(const UnitView &view, unsigned classNumber, uint32_t last) const {
  PathPart part{classNumber, {}, 0};
  llvm::DenseMap<uint32_t, size_t> known; // by facts
  int32_t firstTask = int32_t(view.unit.getFirstTask());
  for (part.cause = firstTask + int32_t(last); part.cause >= firstTask;) {
    uint32_t task = uint32_t(part.cause - firstTask), facts = view.unit.facts[task];
    part.cause = view.run.causes[task];
    if (view.unit.isReceive(task))
      continue; // it takes no time of its own
    auto [place, isNew] = known.try_emplace(facts, part.links.size());
    if (isNew)
      part.links.push_back({facts, 0, 0});
    PathPart::Link &link = part.links[place->second];
    ++link.count;
    link.taken += view.unit.shared.empty() ? view.run.charges->durations[task]
                                           : view.unit.getEnd(view.run, task) - view.unit.getBegin(view.run, task);
  }
  return part;
}

/// Units of a class with one run that the chain enters by the same task have the same part of it.
void CompiledWalk::visitPath(ClassTask last, PathVisitor visit) const {
  std::vector<PathPart> parts;
  llvm::DenseMap<std::pair<const UnitRun *, std::pair<unsigned, uint32_t>>, size_t> known; // by run, class and task
  for (std::optional<ClassTask> next = last; next;) {
    const ClassClock &clock = clocks[next->classNumber];
    size_t number = clock.compiler.findUnit(next->id);
    UnitView view = getView(clock, number);
    uint32_t task = uint32_t(next->id - clock.compiler.getBase(number));
    auto [place, isNew] = known.try_emplace({&view.run, {next->classNumber, task}}, parts.size());
    if (isNew)
      parts.push_back(listPart(view, next->classNumber, task));
    PathPart &part = parts[place->second];
    ++part.times;
    next = getCause(view, next->classNumber, part.cause);
  }
  for (const PathPart &part : parts)
    for (const PathPart::Link &link : part.links)
      visit(part.classNumber, clocks[part.classNumber].compiler.getFacts(link.facts), link.count * part.times,
            link.taken * part.times);
}

CompiledWalk::Counts CompiledWalk::getCounts() const {
  Counts counts;
  counts.charged = numCharged;
  for (const ClassClock &clock : clocks) {
    counts.made += clock.compiler.getNumMade();
    counts.evaluated += clock.numEvaluated;
    counts.tasks += clock.numTasks;
    counts.placed += clock.placed.size();
  }
  return counts;
}
