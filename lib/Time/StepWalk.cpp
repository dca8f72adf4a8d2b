//===- StepWalk.cpp - the longest path over tasks -------------------------===//
#include "StepWalk.h"
#include "stage/Tasks/RankSlots.h"
#include "stage/Time/Diagnostics.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;

constexpr Ticks unknown = -1;

StepWalk::StepWalk(llvm::ArrayRef<TimedPart> timed, const TaskOptions &asked, TaskPricer &pricer,
                   DiagnosticEngine &diags)
    : timed(timed), options(asked), pricer(pricer), diags(diags) {
  options.names = options.orderAsData = false;
  uint64_t firstGroup = 1;
  unsigned firstClass = 0;
  for (const TimedPart &each : timed) {
    const Part &part =
        parts.emplace_back(each, firstGroup, firstClass, /*apart=*/timed.size() > 1, countRanksElsewhere(timed, each));
    firstGroup = part.groups.getEnd();
    firstClass += part.classes.getNumClasses();
    numRanks += part.program.graph->mesh.getNumRanks();
  }
}

StepWalk::ClassWalk::ClassWalk(const StepWalk &walk, const Part &part, unsigned number)
    : part(part), rank(part.classes.getRepresentative(number)),
      tasks(part.program, part.groups, walk.options, part.classes.describe(number), walk.diags,
            /*costs=*/nullptr, part.timed.kernels.get()) {
  ends.assign(tasks.getNumIds(), unknown);
}

bool StepWalk::run() {
  for (const Part &part : parts)
    for (unsigned number = 0; number < part.classes.getNumClasses(); ++number)
      if (!walks.emplace_back(*this, part, number).tasks.checkTags())
        return false;
  if (pricer.needsAll())
    prepare();
  for (unsigned number = 0; number < walks.size(); ++number)
    touch(number);
  do
    advanceTouched();
  while (isGood && takeUpNextUnits());
  if (!isGood)
    return false;
  for (const ClassWalk &walk : walks)
    if (walk.isStalled() || !walk.receives.empty())
      llvm::report_fatal_error("tasks of a program wait for each other");
  return true;
}

void StepWalk::touch(unsigned number) {
  if (!std::exchange(walks[number].isTouched, true))
    touched.push_back(number);
}

void StepWalk::advanceTouched() {
  while (!touched.empty() && isGood) {
    unsigned number = touched.front();
    touched.pop_front();
    walks[number].isTouched = false;
    advance(number);
  }
}

/// What a class that waits for others does later may be what these wait for. False if nothing is left.
bool StepWalk::takeUpNextUnits() {
  bool goesOn = false;
  for (unsigned number = 0; number < walks.size() && isGood; ++number)
    if (walks[number].nextUnit < walks[number].tasks.getUnits().size()) {
      takeUpUnit(number);
      touch(number);
      goesOn = true;
    }
  return goesOn;
}

void StepWalk::advance(unsigned number) {
  ClassWalk &walk = walks[number];
  while (isGood) {
    bool goesOn = false;
    llvm::erase_if(walk.receives, [&](const WaitingTask &task) {
      bool arrives = receive(number, task);
      goesOn |= arrives;
      return arrives;
    });
    for (auto &[key, lane] : walk.lanes)
      while (!lane.tasks.empty() && runFirst(number, lane))
        goesOn = true;
    if (goesOn)
      continue;
    if (walk.isStalled() || walk.nextUnit == walk.tasks.getUnits().size())
      return;
    takeUpUnit(number);
  }
}

/// Tasks still begin to wait unit by unit: of classes that come to a collective at the same time it is that order which
/// decides for whom the others waited.
void StepWalk::prepare() {
  for (unsigned number = 0; number < walks.size(); ++number) {
    ClassWalk &walk = walks[number];
    while (isGood && walk.nextUnit < walk.tasks.getUnits().size()) {
      takeUpUnit(number);
      for (auto &[key, lane] : walk.lanes) {
        for (WaitingTask &task : lane.tasks)
          walk.prepared.emplace_back(std::move(task), &lane);
        lane.tasks.clear();
      }
      for (WaitingTask &task : walk.receives)
        walk.prepared.emplace_back(std::move(task), nullptr);
      walk.receives.clear();
    }
    walk.nextUnit = 0;
  }
  isPrepared = true;
  if (isGood)
    pricer.settle();
}

/// The tasks of the next unit wait from here on.
void StepWalk::takeUpUnit(unsigned number) {
  ClassWalk &walk = walks[number];
  if (isPrepared) {
    for (; !walk.prepared.empty() && walk.prepared.front().first.unit == walk.nextUnit; walk.prepared.pop_front()) {
      auto &[task, lane] = walk.prepared.front();
      if (lane)
        lane->tasks.push_back(std::move(task));
      else
        walk.receives.push_back(std::move(task));
    }
    ++walk.nextUnit;
    return;
  }
  walk.tasks.makeUnit(walk.nextUnit++, [&](const Task &task) {
    if (isGood)
      takeUp(number, task);
  });
  isGood &= !diags.hasErrors();
}

void StepWalk::takeUp(unsigned number, const Task &task) {
  ClassWalk &walk = walks[number];
  while (walk.slots.size() < walk.tasks.getSlots().size()) {
    const RankSlot &slot = walk.tasks.getSlots()[walk.slots.size()];
    bool isSize = slot.kind == RankSlot::Kind::Size;
    walk.slots.push_back(isSize ? 0 : resolve(walk.part.program, walk.part.groups, slot, walk.rank));
  }
  WaitingTask waiting{task.id, task.kind};
  waiting.unit = walk.nextUnit - 1;
  waiting.awaited.append(task.data.begin(), task.data.end());
  waiting.awaited.append(task.order.begin(), task.order.end());
  if (task.kind == TaskKind::Collective)
    waiting.number = findMeeting(walk, task);
  else if (task.isMessage())
    waiting.number = findChannel(number, task);
  if (task.kind == TaskKind::Receive) {
    pricer.takeReceive(number, task, findPlace(walk, task, waiting.number), waiting);
    walk.receives.push_back(std::move(waiting));
  } else if (pricer.price(number, task, findPlace(walk, task, waiting.number), waiting))
    getLane(walk, task).tasks.push_back(std::move(waiting));
  else
    isGood = false;
}

static ActivityKind getActivityKind(const Task &task) {
  bool isCompute = task.kind == TaskKind::Compute;
  return isCompute && !task.runsOnHost ? ActivityKind::Compute
         : isCompute || task.isCopy()  ? ActivityKind::Copy
                                       : ActivityKind::Communication;
}

/// Copies, and what the host computes, are one kind of activity, and run beside each other.
std::pair<uint64_t, unsigned> StepWalk::getLaneKey(const Task &task) {
  return {task.stream, unsigned(getActivityKind(task)) * 2 + task.runsOnHost};
}

StepWalk::Lane &StepWalk::getLane(ClassWalk &walk, const Task &task) {
  Lane &lane = walk.lanes[getLaneKey(task)];
  lane.kind = getActivityKind(task);
  return lane;
}

unsigned StepWalk::findMeeting(const ClassWalk &walk, const Task &task) {
  const RankSlot &slot = walk.tasks.getSlots()[task.group.getSlot()];
  const GroupKind &kind = walk.part.groups.getKind(slot.groupKind);
  auto [number, isNew] =
      meetingNumbers.try_emplace({task.group.resolve(walk.slots), task.stream}, unsigned(meetings.size()));
  if (isNew) {
    RankClasses::GroupSize size = walk.part.classes.getGroupSize(kind);
    const Machine &machine = walk.part.timed.machine;
    GroupPlace place = size.members;
    if (!machine.getBlockSizes().empty()) {
      std::vector<int64_t> members = walk.part.classes.listMembers(kind, walk.rank);
      for (int64_t &member : members)
        member -= walk.part.ranksElsewhere;
      place = machine.findPlace(members);
    }
    meetings.push_back({size.classes, std::move(place), 0, {}});
  }
  return number->second;
}

/// Where the ranks that communicate lie, on the rank that stands for the class. `number`: the meeting of a collective.
GroupPlace StepWalk::findPlace(const ClassWalk &walk, const Task &task, unsigned number) const {
  if (task.isPricedAsMessage()) {
    int64_t peer = int64_t(task.peer.resolve(walk.slots));
    const Part &own = walk.part, &other = findPart(peer);
    if (!other.timed.isOnMachineOf(own.timed))
      return findFarthest(own.timed.machine);
    return own.timed.machine.findPlace(
        {own.program.firstRank + walk.rank - own.ranksElsewhere, peer - other.ranksElsewhere});
  }
  if (task.kind != TaskKind::Collective)
    return 1;
  return meetings[number].place;
}

unsigned StepWalk::findChannel(unsigned number, const Task &task) {
  const ClassWalk &walk = walks[number];
  unsigned peer = findClass(int64_t(task.peer.resolve(walk.slots)));
  bool isSend = task.kind == TaskKind::Send;
  // Along an axis of which all ranks are one class: to which neighbour, as the sender counts.
  AxisId axis = 0;
  int64_t shift = 0;
  if (const RankSlot &slot = walk.tasks.getSlots()[task.peer.getSlot()]; slot.kind == RankSlot::Kind::Neighbour) {
    axis = slot.axis;
    int64_t size = walk.part.program.graph->mesh[axis].size;
    shift = isSend ? slot.shift : size - slot.shift;
  }
  unsigned sender = isSend ? number : peer, receiver = isSend ? peer : number;
  auto [known, isNew] = channelNumbers.try_emplace({sender, receiver, axis, shift, task.tag.resolve(walk.slots)},
                                                   unsigned(channels.size()));
  if (isNew)
    channels.push_back({receiver, {}});
  return known->second;
}

/// The part of a rank that is counted in all parts.
const StepWalk::Part &StepWalk::findPart(int64_t rank) const {
  for (const Part &part : llvm::reverse(parts))
    if (rank >= part.program.firstRank)
      return part;
  llvm_unreachable("ranks are counted from 0");
}

unsigned StepWalk::findClass(int64_t rank) const {
  const Part &part = findPart(rank);
  return part.firstClass + part.classes.find(rank - part.program.firstRank);
}

const TimedPart *StepWalk::findOtherMachine(unsigned classNumber, const Task &task) const {
  if (!task.isPricedAsMessage() || parts.size() == 1)
    return nullptr;
  const ClassWalk &walk = walks[classNumber];
  const Part &other = findPart(int64_t(task.peer.resolve(walk.slots)));
  return other.timed.isOnMachineOf(walk.part.timed) ? nullptr : &other.timed;
}

/// When all tasks for which a task waits have ended; `unknown` if some have not.
StepWalk::Readiness StepWalk::getReady(const ClassWalk &walk, const WaitingTask &task) {
  Readiness ready = {0, std::nullopt};
  for (uint64_t id : task.awaited) {
    if (walk.ends[id] == unknown)
      return {unknown, std::nullopt};
    if (walk.ends[id] > ready.time || (!ready.cause && walk.ends[id] == ready.time))
      ready = {walk.ends[id], id};
  }
  return ready;
}

Ticks StepWalk::addTime(Ticks begin, Ticks duration) {
  if (duration < maxTicks - begin)
    return begin + duration;
  if (std::exchange(isGood, false))
    diags.report(parts.front().program.graph->loc, diag::TimeTooLong);
  return begin;
}

/// The first task of a lane ends, and leaves it.
void StepWalk::end(ClassWalk &walk, Lane &lane, Ticks begin, Ticks end) {
  walk.ends[lane.tasks.front().id] = end;
  lane.tasks.pop_front();
  last = std::max(last, end);
  if (begin == end)
    return;
  if (lane.activities.empty() || lane.activities.back().end != begin)
    lane.activities.push_back({lane.kind, begin, begin});
  lane.activities.back().end = end;
}

static std::optional<ClassTask> toClassTask(unsigned classNumber, std::optional<uint64_t> id) {
  return id ? std::optional(ClassTask{classNumber, *id}) : std::nullopt;
}

/// Whether the first task of a lane ends.
bool StepWalk::runFirst(unsigned number, Lane &lane) {
  ClassWalk &walk = walks[number];
  WaitingTask &task = lane.tasks.front();
  Readiness ready = getReady(walk, task);
  if (ready.time == unknown)
    return false;
  if (task.kind == TaskKind::Collective)
    return meet(number, task, ready);
  Ticks done = addTime(ready.time, pricer.getDuration(number, task));
  if (task.kind == TaskKind::Send) {
    channels[task.number].sent.push_back({{number, task.id}, ready.time, done});
    touch(channels[task.number].receiver);
  }
  pricer.run(number, task, ready.time, done, toClassTask(number, ready.cause));
  pricer.end({{number, &task}});
  end(walk, lane, ready.time, done);
  return true;
}

/// A class comes to a collective, which all members run if it is the last one.
bool StepWalk::meet(unsigned number, WaitingTask &task, Readiness ready) {
  if (std::exchange(task.hasArrived, true))
    return false;
  unsigned place = task.number;
  Meeting &meeting = meetings[place];
  if (meeting.arrived.empty() || ready.time > meeting.begin) {
    meeting.begin = ready.time;
    meeting.cause = toClassTask(number, ready.cause);
  }
  meeting.arrived.push_back(number);
  if (meeting.arrived.size() < meeting.expected)
    return false;
  llvm::SmallVector<std::pair<unsigned, const WaitingTask *>, 4> members;
  llvm::SmallVector<Lane *, 4> lanes;
  for (unsigned member : meeting.arrived)
    for (auto &[key, lane] : walks[member].lanes)
      if (!lane.tasks.empty() && lane.tasks.front().hasArrived && lane.tasks.front().number == place) {
        members.emplace_back(member, &lane.tasks.front());
        lanes.push_back(&lane);
      }
  Ticks duration = 0, begin = meeting.begin;
  for (auto [member, taken] : members)
    duration = std::max(duration, pricer.getDuration(member, *taken));
  Ticks done = addTime(begin, duration);
  for (auto [member, taken] : members)
    pricer.run(member, *taken, begin, done, meeting.cause);
  meeting.arrived.clear();
  pricer.end(members);
  for (auto [member, lane] : llvm::zip(members, lanes)) {
    end(walks[member.first], *lane, begin, done);
    touch(member.first);
  }
  return true;
}

bool StepWalk::receive(unsigned number, const WaitingTask &task) {
  ClassWalk &walk = walks[number];
  auto [posted, cause] = getReady(walk, task);
  Channel &channel = channels[task.number];
  if (posted == unknown || channel.sent.empty())
    return false;
  auto [send, begin, end] = channel.sent.front();
  channel.sent.pop_front();
  pricer.run(number, task, std::max(begin, posted), std::max(end, posted),
             posted > end ? toClassTask(number, cause) : send);
  pricer.endReceive(number, task, send);
  walk.ends[task.id] = std::max(end, posted);
  walk.arrivals.push_back({ActivityKind::Communication, std::max(begin, posted), std::max(end, posted)});
  last = std::max(last, walk.ends[task.id]);
  return true;
}

StepActivity StepWalk::collect() const {
  StepActivity result = {last, size_t(numRanks), {}};
  for (const ClassWalk &walk : walks) {
    std::vector<Activity> activities = walk.arrivals;
    for (auto &[key, lane] : walk.lanes)
      llvm::append_range(activities, lane.activities);
    result.ranks.push_back({{}, summarize(activities, last)});
  }
  for (const Part &part : parts)
    for (int64_t rank = 0; rank < part.program.graph->mesh.getNumRanks(); ++rank)
      result.ranks[part.firstClass + part.classes.find(rank)].first.push_back(uint32_t(part.program.firstRank + rank));
  return result;
}
