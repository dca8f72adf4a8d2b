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
// stage itself and one unit of a neighbouring virtual stage. Each stage is advanced
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
  std::optional<unsigned> needed = forward ? schedule.getPrevious(virtualStage) : schedule.getNext(virtualStage);
  return needed ? std::optional(Need{*needed, forward}) : std::nullopt;
}

Execution::Execution(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration)
    : schedule(schedule), places(invertPlacement(schedule)),
      ends(size_t(schedule.getNumVirtualStages()) * schedule.microbatches * 2, -1), start(schedule.stages),
      busy(schedule.stages, 0) {
  std::vector<int64_t> free(schedule.stages, 0);
  std::vector<unsigned> awake(schedule.stages);
  std::iota(awake.rbegin(), awake.rend(), 0);
  while (!awake.empty()) {
    unsigned stage = awake.back();
    awake.pop_back();
    for (unsigned position = start[stage].size(); position < schedule.units[stage].size(); ++position) {
      const Unit &unit = schedule.units[stage][position];
      int64_t ready = free[stage];
      if (std::optional<Need> need = getNeed(stage, unit)) {
        int64_t end = endOf(need->virtualStage, unit.microbatch, need->forward);
        if (end < 0)
          break;
        ready = std::max(ready, end);
      }
      int64_t time = duration({stage, position});
      start[stage].push_back(ready);
      busy[stage] += time;
      free[stage] = ready + time;
      bool forward = isForward(unit.kind);
      if (!hasMessages(unit.kind))
        continue;
      unsigned virtualStage = schedule.getVirtualStage(unit.chunk, stage);
      endOf(virtualStage, unit.microbatch, forward) = free[stage];
      if (auto waiting = forward ? schedule.getNext(virtualStage) : schedule.getPrevious(virtualStage))
        awake.push_back(places[*waiting].first);
    }
    makespan = std::max(makespan, free[stage]);
  }
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
  for (const Unit &unit : schedule.units[stage]) {
    if (unit.kind == PhaseKind::Forward) {
      peak.perChunk[unit.chunk] = std::max(peak.perChunk[unit.chunk], ++current[unit.chunk]);
      peak.total = std::max(peak.total, ++total);
    } else if (unit.kind == PhaseKind::Backward || unit.kind == half) {
      --current[unit.chunk];
      --total;
    }
  }
  return peak;
}

ScheduleTimes stage::simulate(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration) {
  Execution execution(schedule, duration);
  return {execution.getStart(), execution.getBusy(), execution.getMakespan()};
}
