//===- UnitSteps.cpp - in which order the tasks of a unit are evaluated ---===//
//
// Tasks stand behind those for which they wait, but for the receives of permutes, which stand before their sends. What
// a unit tells other classes, and what it waits for from them, is listed here, too.
//
//===----------------------------------------------------------------------===//
#include "UnitCompiler.h"

using namespace stage;

/// Messages, and collectives of several classes.
void UnitCompiler::connect(CompiledUnit &unit, const UnitPattern &pattern, const ClassTemplate &description) {
  std::array<unsigned, 2> nextPorts = {0, description.secondPorts};
  for (uint32_t task = 0; task < pattern.tasks.size(); ++task) {
    const UnitPattern::PatternTask &sample = pattern.tasks[task];
    if (sample.kind == TaskKind::Receive)
      unit.receives.push_back(task);
    if (sample.kind == TaskKind::Collective && connections.getMeeting(sample.connection).expected > 1) {
      unit.shared.push_back({task, sample.connection});
      unit.isWhole = false;
    }
    if (sample.kind != TaskKind::Send && sample.kind != TaskKind::Receive)
      continue;
    unsigned connection = sample.isPermute ? sample.connection : nextPorts[sample.part]++;
    const Connections::Channel &channel =
        connections.getChannel(sample.isPermute ? connection : description.ports[connection].channel);
    if (channel.sender == channel.receiver) {
      if (sample.kind == TaskKind::Receive) // a permute's send stands behind its receive
        unit.localSends[task] = task + 1;
      continue;
    }
    unit.isWhole &= !sample.isPermute;
    (sample.kind == TaskKind::Send ? unit.sent : unit.received)
        .push_back({task, connection, sample.tag, sample.isPermute, sample.part});
  }
}

/// Tasks in their order, but receives where they are waited for first.
void UnitCompiler::order(CompiledUnit &unit) {
  using Step = CompiledUnit::Step;
  uint32_t numTasks = unit.getNumTasks(), firstTask = unit.getFirstTask();
  std::vector<uint32_t> firstReader(numTasks, numTasks);
  for (uint32_t task = 0; task < numTasks && !unit.receives.empty(); ++task)
    for (uint32_t place : unit.getAwaited(task))
      if (place >= firstTask)
        firstReader[place - firstTask] = std::min(firstReader[place - firstTask], task);
  std::vector<std::pair<uint32_t, uint32_t>> waiting; // receives, by first reader
  for (uint32_t task : unit.receives)
    waiting.emplace_back(firstReader[task], task);
  llvm::sort(waiting);
  auto nextWaiting = waiting.begin();
  auto nextReceive = unit.receives.begin();
  for (uint32_t task = 0;;) {
    for (; nextWaiting != waiting.end() && nextWaiting->first == task; ++nextWaiting) {
      auto local = unit.localSends.find(nextWaiting->second);
      unit.steps.push_back(local != unit.localSends.end()
                               ? Step{Step::Kind::LocalReceive, nextWaiting->second, local->second}
                               : Step{Step::Kind::Receive, nextWaiting->second,
                                      *CompiledUnit::findOfTask(unit.received, nextWaiting->second)});
    }
    if (task == numTasks)
      return;
    if (nextReceive != unit.receives.end() && *nextReceive == task) {
      ++nextReceive;
      ++task;
      continue;
    }
    uint32_t end = nextReceive == unit.receives.end() ? numTasks : *nextReceive;
    if (nextWaiting != waiting.end())
      end = std::min(end, nextWaiting->first);
    unit.steps.push_back({Step::Kind::Plain, task, end});
    task = end;
  }
}

/// Which messages must have come for each send and collective.
void UnitCompiler::listEvents(CompiledUnit &unit, const UnitPattern &pattern) {
  using Step = CompiledUnit::Step;
  if (unit.received.size() >= 64)
    unit.isWhole = false;
  if (!unit.isWhole)
    return;
  uint32_t firstTask = unit.getFirstTask();
  std::vector<uint64_t> needs(unit.getNumTasks());
  auto find = [&](uint32_t task) {
    for (uint32_t place : unit.getAwaited(task))
      if (place >= firstTask)
        needs[task] |= needs[place - firstTask];
  };
  for (const Step &step : unit.steps) {
    if (step.kind == Step::Kind::Plain) {
      for (uint32_t task = step.task; task < step.end; ++task)
        find(task);
      continue;
    }
    find(step.task);
    needs[step.task] |= step.kind == Step::Kind::Receive ? uint64_t(1) << step.end : needs[step.end];
  }
  uint64_t all = (uint64_t(1) << unit.received.size()) - 1;
  auto nextSent = unit.sent.begin();
  for (uint32_t task = 0; task < unit.getNumTasks(); ++task) {
    if (pattern.tasks[task].kind != TaskKind::Collective && pattern.tasks[task].kind != TaskKind::Send)
      continue;
    bool isSent = nextSent != unit.sent.end() && nextSent->task == task;
    // Of its own, one after the other, the first says it all.
    bool isLikeBefore =
        !isSent && !unit.events.empty() && !unit.events.back().sent && unit.events.back().needs == needs[task];
    if (!isLikeBefore)
      unit.events.push_back(
          {needs[task], isSent ? std::optional(uint32_t(nextSent - unit.sent.begin())) : std::nullopt});
    nextSent += isSent;
    unit.isWhole &= !isSent || needs[task] == all;
  }
}

void UnitCompiler::listLanes(CompiledUnit &unit) {
  std::map<std::pair<uint64_t, unsigned>, std::vector<uint32_t>> lanes;
  for (uint32_t task = 0; task < unit.getNumTasks(); ++task)
    if (!unit.isReceive(task))
      lanes[store.getLaneKey(unit.facts[task])].push_back(task);
  for (auto &[key, tasksOfLane] : lanes)
    unit.lanes.push_back(std::move(tasksOfLane));
}
