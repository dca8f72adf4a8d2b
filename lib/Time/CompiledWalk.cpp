//===- CompiledWalk.cpp - the longest path over units ---------------------===//
#include "CompiledWalk.h"
#include "MachinePricer.h"
#include "UnitCharger.h"

using namespace stage;

CompiledWalk::CompiledWalk(const TimedPart &part, const TaskOptions &asked, DiagnosticEngine &diags)
    : diags(diags), runtime(part.runtime), hasCharges(hasSurcharges(part)), options(asked), connections(part),
      store(connections, part.runtime) {
  options.names = options.orderAsData = false;
  options.works = part.machine.isDeclared();
}

CompiledWalk::Outcome CompiledWalk::compile() {
  for (unsigned number = 0; number < connections.classes.getNumClasses(); ++number) {
    ClassClock &clock = clocks.emplace_back(connections, store, options, number, *this, diags);
    if (!clock.compiler.getTasks().checkTags())
      return Outcome::Failed;
    if (bool isGood = list(clock); diags.hasErrors() || !isGood)
      return diags.hasErrors() ? Outcome::Failed : Outcome::Unsupported;
  }
  return Outcome::Done;
}

CompiledWalk::Outcome CompiledWalk::run() {
  if (Outcome outcome = compile(); outcome != Outcome::Done)
    return outcome;
  charge();
  for (unsigned number = 0; number < clocks.size(); ++number)
    touch(number);
  while (!touched.empty()) {
    unsigned number = touched.front();
    touched.pop_front();
    clocks[number].isTouched = false;
    if (!advance(number))
      return Outcome::Unsupported;
  }
  for (const ClassClock &clock : clocks)
    if (clock.placed.size() < clock.compiler.getNumUnits())
      return Outcome::Unsupported;
  for (const ClassClock &clock : clocks)
    for (const Placed &placed : clock.placed)
      last = std::max(last, placed.getLast());
  return Outcome::Done;
}

/// Compiles the units of a class. False where one cannot be compiled.
bool CompiledWalk::list(ClassClock &clock) {
  clock.firstPermute = clock.compiler.getTasks().getNumIssued().back();
  clock.units.reserve(clock.compiler.getNumUnits());
  clock.placed.reserve(clock.compiler.getNumUnits());
  std::vector<uint32_t> related;
  while (clock.units.size() < clock.compiler.getNumUnits()) {
    CompiledUnit *unit = clock.compiler.compileNext(related);
    if (!unit)
      return false;
    size_t number = clock.units.size();
    clock.units.add(unit, related, clock.compiler.listMicrobatches(number), clock.compiler.getTemplate(number),
                    clock.compiler.getPlace(number));
  }
  clock.units.shrink();
  if (!keepsUnits)
    clock.compiler.finish();
  return true;
}

/// Finds what the tasks of all units take.
void CompiledWalk::charge() {
  if (!hasCharges) {
    for (ClassClock &clock : clocks)
      for (size_t number = 0; number < clock.units.size(); ++number)
        clock.units[number].charges = &clock.units[number].unit->findCharges({});
    return;
  }
  ChargeStore charges(store, runtime);
  for (ClassClock &clock : clocks) {
    UnitCharger charger(clock.units, charges);
    charger.charge();
    numCharged += charger.getNumTogether();
  }
  numCharged += charges.getNumCharged();
}

void CompiledWalk::touch(unsigned number) {
  if (!std::exchange(clocks[number].isTouched, true))
    touched.push_back(number);
}

/// False where a unit takes too long.
bool CompiledWalk::advance(unsigned number) {
  ClassClock &clock = clocks[number];
  while (clock.placed.size() < clock.compiler.getNumUnits()) {
    if (!clock.unit)
      startUnit(clock);
    Progress progress = clock.unit->isWhole ? runWhole(clock, number) : runLanes(clock, number);
    if (progress == Progress::Waits)
      return true;
    if (progress == Progress::Fails)
      return false;
    clock.firstPermute += clock.unit->numPermutes;
    clock.unit = nullptr;
  }
  return true;
}

/// Finds when the tasks ended for which the next unit waits.
void CompiledWalk::startUnit(ClassClock &clock) {
  size_t number = clock.placed.size();
  clock.unit = clock.units[number].unit;
  llvm::ArrayRef<uint32_t> related = clock.units.getRelated(number);
  const CompiledUnit &unit = *clock.unit;
  clock.times.clear();
  for (const CompiledUnit::Reference &reference : unit.references)
    clock.times.push_back(reference.unit ? clock.getEnd(related[*reference.unit], reference.offset) : 0);
  clock.times.resize(unit.getFirstTask(), -1);
  clock.nextSenders.assign(unit.received.size(), {0, 0});
  clock.received = 0;
  clock.isStarted = false;
}

std::pair<unsigned, uint64_t> CompiledWalk::locate(const ClassClock &clock,
                                                   const CompiledUnit::Message &message) const {
  if (message.isPermute)
    return {message.connection, clock.firstPermute + message.tag};
  const UnitList::Entry &unit = clock.units[clock.placed.size()];
  const Port &port = clock.compiler.getPort(unit.templateNumber, message.connection);
  return {port.channel, port.tag + unit.microbatches[message.part] * connections.groups.getMostValues()};
}

/// Whether the message has been sent.
bool CompiledWalk::receive(ClassClock &clock, uint32_t message) {
  const CompiledUnit::Message &received = clock.unit->received[message];
  Ticks &time = clock.times[clock.unit->references.size() + message];
  if (time >= 0)
    return true;
  auto sent = messages.find(locate(clock, received));
  if (sent == messages.end())
    return false;
  time = sent->second.end;
  clock.nextSenders[message] = sent->second.send;
  messages.erase(sent);
  return true;
}

void CompiledWalk::send(ClassClock &clock, unsigned number, uint32_t message, Ticks end) {
  const CompiledUnit::Message &sent = clock.unit->sent[message];
  uint64_t id = clock.compiler.getBase(clock.placed.size()) + sent.task;
  auto place = locate(clock, sent);
  messages[place] = {end, {number, id}};
  touch(connections.getChannel(place.first).receiver);
}

/// A unit that waits for messages and then for nobody. Where classes come to a collective at the same time, the order
/// in which they go on decides for which of them others waited: it is that of StepWalk, in which a class is taken up
/// again after each collective of its own.
CompiledWalk::Progress CompiledWalk::runWhole(ClassClock &clock, unsigned number) {
  CompiledUnit &unit = *clock.unit;
  uint64_t before = std::exchange(clock.received, 0);
  for (uint32_t message = 0; message < unit.received.size(); ++message)
    clock.received |= uint64_t(receive(clock, message)) << message;
  bool isFirst = !std::exchange(clock.isStarted, true);
  auto isNew = [&](const CompiledUnit::Event &event) {
    return !(event.needs & ~clock.received) && (isFirst || (event.needs & ~before));
  };
  if (clock.received + 1 != uint64_t(1) << unit.received.size()) {
    if (llvm::any_of(unit.events, isNew))
      touch(number);
    return Progress::Waits;
  }
  UnitCharges &charges = clock.getCharges();
  KnownRuns &known = clock.knownRuns[&charges];
  auto [run, later] = known.find(clock.times, charges);
  if (!run) {
    std::unique_ptr<UnitRun> made = unit.startRun(charges);
    llvm::copy(clock.times, made->times.begin());
    if (!evaluate(unit, *made))
      return Progress::Fails;
    ++clock.numEvaluated;
    clock.numTasks += unit.getNumTasks();
    unit.findLimits(*made);
    listEntries(clock, unit, *made);
    run = made.get();
    known.add(*run);
    charges.runs.push_back(std::move(made));
  }
  if (run->last >= maxTicks - later)
    return Progress::Fails;
  for (const CompiledUnit::Event &event : unit.events)
    if (event.sent)
      send(clock, number, *event.sent, unit.getEnd(*run, unit.sent[*event.sent].task) + later);
    else if (isNew(event))
      touch(number);
  place(clock, number, *run, later);
  return Progress::Done;
}

bool CompiledWalk::evaluate(const CompiledUnit &unit, UnitRun &run) const {
  using Kind = CompiledUnit::Step::Kind;
  for (const CompiledUnit::Step &step : unit.steps)
    if (step.kind == Kind::LocalReceive)
      unit.runLocalReceive(run, step.task, step.end);
    else if (step.kind == Kind::Receive)
      unit.runReceive(run, step.task, step.end);
    else if (!unit.runPlain(run, step.task, step.end))
      return false;
  return true;
}

/// A unit that waits for other classes on its way, as far as its lanes come.
CompiledWalk::Progress CompiledWalk::runLanes(ClassClock &clock, unsigned number) {
  const CompiledUnit &unit = *clock.unit;
  if (!clock.run) {
    clock.run = unit.startRun(clock.getCharges());
    llvm::copy(clock.times, clock.run->times.begin());
    clock.positions.assign(unit.lanes.size(), {});
    clock.receives = unit.receives;
    ++clock.numEvaluated;
    clock.numTasks += unit.getNumTasks();
  }
  // Messages mostly come in their order, so that those behind several that wait are looked at where nothing else goes
  // on.
  constexpr size_t mostWaiting = 16;
  for (bool goesOn = true, looksAtAll = false; goesOn || !looksAtAll;) {
    looksAtAll = !goesOn;
    goesOn = false;
    size_t numWaiting = 0;
    llvm::erase_if(clock.receives, [&](uint32_t task) {
      if (numWaiting == mostWaiting && !looksAtAll)
        return false;
      bool arrives = runReceive(clock, task);
      numWaiting += !arrives;
      goesOn |= arrives;
      return arrives;
    });
    for (size_t lane = 0; lane < unit.lanes.size(); ++lane)
      for (Progress progress = Progress::Done; progress == Progress::Done && !clock.isAtEnd(lane);) {
        progress = runNext(clock, number, lane);
        if (progress == Progress::Fails)
          return progress;
        goesOn |= progress == Progress::Done;
      }
  }
  for (size_t lane = 0; lane < unit.lanes.size(); ++lane)
    if (!clock.isAtEnd(lane))
      return Progress::Waits;
  if (!clock.receives.empty())
    return Progress::Waits;
  listEntries(clock, unit, *clock.run);
  clock.ownRuns.push_back(std::move(clock.run));
  place(clock, number, *clock.ownRuns.back(), 0);
  return Progress::Done;
}

/// Whether a receive ends.
bool CompiledWalk::runReceive(ClassClock &clock, uint32_t task) {
  const CompiledUnit &unit = *clock.unit;
  if (unit.getReady(*clock.run, task).first < 0)
    return false;
  if (auto local = unit.localSends.find(task); local != unit.localSends.end()) {
    bool isSent = unit.getEnd(*clock.run, local->second) >= 0;
    if (isSent)
      unit.runLocalReceive(*clock.run, task, local->second);
    return isSent;
  }
  uint32_t number = *CompiledUnit::findOfTask(unit.received, task);
  if (!receive(clock, number))
    return false;
  size_t place = unit.references.size() + number;
  clock.run->times[place] = clock.times[place];
  unit.runReceive(*clock.run, task, number);
  return true;
}

/// Runs the next task of a lane, if it may begin.
CompiledWalk::Progress CompiledWalk::runNext(ClassClock &clock, unsigned number, size_t lane) {
  const CompiledUnit &unit = *clock.unit;
  uint32_t task = unit.lanes[lane][clock.positions[lane].next];
  if (unit.getReady(*clock.run, task).first < 0)
    return Progress::Waits;
  if (std::optional<uint32_t> shared = CompiledUnit::findOfTask(unit.shared, task))
    return meet(clock, number, lane, *shared);
  if (!unit.runPlain(*clock.run, task, task + 1))
    return Progress::Fails;
  ++clock.positions[lane].next;
  TaskKind kind = clock.compiler.getFacts(unit.facts[task]).kind;
  if (std::optional<uint32_t> sent = CompiledUnit::findOfTask(unit.sent, task))
    send(clock, number, *sent, unit.getEnd(*clock.run, task));
  else if (kind == TaskKind::Collective || kind == TaskKind::Send)
    touch(number);
  return Progress::Done;
}

/// A class comes to a collective, which all members run if it is the last one.
CompiledWalk::Progress CompiledWalk::meet(ClassClock &clock, unsigned number, size_t lane, uint32_t shared) {
  const CompiledUnit::Shared &own = clock.unit->shared[shared];
  if (std::exchange(clock.positions[lane].arrivedAt, shared) == shared)
    return Progress::Waits;
  if (meetings.size() < connections.getNumMeetings())
    meetings.resize(connections.getNumMeetings());
  OpenMeeting &meeting = meetings[own.meeting];
  auto [ready, cause] = clock.unit->getReady(*clock.run, own.task);
  if (meeting.arrived.empty() || ready > meeting.begin) {
    meeting.begin = ready;
    meeting.cause = getCause(getNext(clock), number, cause);
  }
  meeting.arrived.push_back({number, lane});
  meeting.duration = std::max(meeting.duration, clock.getCharges().durations[own.task]);
  if (meeting.arrived.size() < connections.getMeeting(own.meeting).expected)
    return Progress::Waits;
  if (meeting.duration >= maxTicks - meeting.begin)
    return Progress::Fails;
  Ticks end = meeting.begin + meeting.duration;
  for (auto [member, itsLane] : meeting.arrived) {
    ClassClock &other = clocks[member];
    LanePosition &position = other.positions[itsLane];
    uint32_t place = *position.arrivedAt, task = other.unit->shared[place].task;
    other.run->times[other.unit->getFirstTask() + task] = end;
    other.run->causes[task] = -2 - int32_t(place);
    other.run->shared[place] = {meeting.begin, meeting.cause};
    other.run->last = std::max(other.run->last, end);
    position = {position.next + 1, std::nullopt};
    touch(member);
  }
  meeting = {};
  return Progress::Done;
}
