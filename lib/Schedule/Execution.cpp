//===- Execution.cpp - order, time and microbatches in flight -------------===//
//
// Problem: find out whether all stages get to the end of their lists, when each unit
// runs, and an order of all units that respects every dependency.
//
// Example, two stages, every unit takes one step:
//
//   stage 0: F0 F1 .  B0 .  B1          starts 0 1 3 5
//   stage 1: .  F0 B0 F1 B1             starts 1 2 3 4
//
// Algorithm. A stage runs its list in order, so the only things to wait for are the
// stage itself and one unit of a neighbouring virtual stage, for each unit of a pair. Each stage is advanced
// until it waits; a unit that ends wakes the one stage that may wait for it. Every
// unit is run once and every wake-up belongs to a unit: linear time. Start times do
// not depend on the order in which stages are advanced, since each is the maximum of
// two end times. With steps of one they are levels, which order the units.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"
#include <numeric>

using namespace stage;

std::vector<std::pair<unsigned, unsigned>> stage::invertPlacement(const Schedule &schedule) {
  std::vector<std::pair<unsigned, unsigned>> places(schedule.getNumVirtualStages());
  for (unsigned chunk = 0; chunk < schedule.chunks; ++chunk)
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      places[schedule.getVirtualStage(chunk, stage)] = {stage, chunk};
  return places;
}

std::optional<Execution::Need> Execution::getNeed(unsigned stage, const Unit &unit) const {
  unsigned virtualStage = schedule.getVirtualStage(unit.chunk, stage);
  if (!hasMessages(unit.kind))
    return std::nullopt;
  bool forward = isForward(unit.kind);
  std::optional<unsigned> needed = (forward ? before : behind)[virtualStage];
  return needed ? std::optional(Need{*needed, forward}) : std::nullopt;
}

Execution::Execution(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration)
    : schedule(schedule), places(invertPlacement(schedule)),
      ends(size_t(schedule.getNumVirtualStages()) * schedule.microbatches * 2, -1), start(schedule.stages),
      endsOfUnits(schedule.stages), busy(schedule.stages, 0) {
  for (unsigned virtualStage = 0; virtualStage < places.size(); ++virtualStage) {
    before.push_back(schedule.getPrevious(virtualStage));
    behind.push_back(schedule.getNext(virtualStage));
  }
  for (unsigned stage = 0; stage < schedule.stages; ++stage) {
    start[stage].reserve(schedule.units[stage].size());
    endsOfUnits[stage].reserve(schedule.units[stage].size());
  }
  std::vector<int64_t> free(schedule.stages, 0);
  std::vector<unsigned> awake(schedule.stages);
  std::iota(awake.rbegin(), awake.rend(), 0);
  while (!awake.empty()) {
    unsigned stage = awake.back();
    awake.pop_back();
    llvm::ArrayRef<Unit> units = schedule.units[stage];
    for (size_t position = start[stage].size(); position < units.size(); position = start[stage].size()) {
      llvm::ArrayRef<Unit> together = units.slice(position, getPairEnd(units, position) - position);
      if (!llvm::all_of(together, [&](const Unit &unit) { return isReady(stage, unit); }))
        break;
      for (const Unit &unit : together)
        if (std::optional<Need> need = getNeed(stage, unit))
          free[stage] = std::max(free[stage], endOf(need->virtualStage, unit.microbatch, need->forward));
      for (size_t i = 0; i < together.size(); ++i) {
        int64_t time = duration({stage, unsigned(position + i)});
        start[stage].push_back(free[stage]);
        busy[stage] += time;
        free[stage] += time;
      }
      endsOfUnits[stage].resize(start[stage].size(), free[stage]);
      for (const Unit &unit : together) {
        if (!hasMessages(unit.kind))
          continue;
        bool forward = isForward(unit.kind);
        unsigned virtualStage = schedule.getVirtualStage(unit.chunk, stage);
        endOf(virtualStage, unit.microbatch, forward) = free[stage];
        if (auto waiting = (forward ? behind : before)[virtualStage])
          awake.push_back(places[*waiting].first);
      }
    }
    makespan = std::max(makespan, free[stage]);
  }
}

unsigned Execution::findBlocked(unsigned stage) const {
  unsigned position = start[stage].size();
  return isReady(stage, schedule.units[stage][position]) ? position + 1 : position;
}

std::vector<UnitRef> stage::topologicalOrder(const Schedule &schedule) {
  Execution execution(schedule, [](UnitRef) { return 1; });
  std::vector<UnitRef> order;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position)
      order.push_back({stage, position});
  // Units come stage by stage already, so a stable sort leaves equal levels in the order of stages.
  llvm::stable_sort(order, [&](UnitRef a, UnitRef b) {
    return execution.getStart()[a.stage][a.position] < execution.getStart()[b.stage][b.position];
  });
  return order;
}

InFlight stage::countInFlight(const Schedule &schedule, unsigned stage, HeldUntil until) {
  InFlight peak{std::vector<unsigned>(schedule.chunks, 0), 0};
  std::vector<unsigned> current(schedule.chunks, 0);
  unsigned total = 0;
  PhaseKind half = until == HeldUntil::InputGradient ? PhaseKind::BackwardInput : PhaseKind::BackwardWeight;
  llvm::ArrayRef<Unit> units = schedule.units[stage];
  auto run = [&](const Unit &unit) {
    if (unit.kind == PhaseKind::Forward) {
      peak.perChunk[unit.chunk] = std::max(peak.perChunk[unit.chunk], ++current[unit.chunk]);
      peak.total = std::max(peak.total, ++total);
    } else if (unit.kind == PhaseKind::Backward || unit.kind == half) {
      --current[unit.chunk];
      --total;
    }
  };
  for (size_t position = 0, end; position < units.size(); position = end) {
    end = getPairEnd(units, position);
    // While a pair runs, the microbatch of its forward is there, and that of its backward still is.
    for (bool goesForward : {true, false})
      for (const Unit &unit : units.slice(position, end - position))
        if (isForward(unit.kind) == goesForward)
          run(unit);
  }
  return peak;
}

ScheduleTimes stage::simulate(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration) {
  Execution execution(schedule, duration);
  return {execution.getStart(), execution.getBusy(), execution.getMakespan()};
}
