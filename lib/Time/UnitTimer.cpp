//===- UnitTimer.cpp - how long units take, one after the other -----------===//
#include "stage/Time/UnitTimer.h"
#include "UnitRecorder.h"
#include "stage/Time/StepTime.h"

using namespace stage;

UnitTimer::UnitTimer(std::unique_ptr<Recorder> recorder) : recorder(std::move(recorder)) {}
UnitTimer::~UnitTimer() = default;

std::unique_ptr<UnitTimer> UnitTimer::create(const TimedPart &part, DiagnosticEngine &diags) {
  const std::vector<TimedPart> used = findUsed(part, TaskOptions(), diags);
  auto recorder = used.empty() ? nullptr : std::make_unique<Recorder>(used.front(), diags);
  if (!recorder || !recorder->record())
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
    lastUnit = unit;
    for (unsigned stage = 0; stage < busy.size(); ++stage) {
      auto [end, sent] = recorder->run(unit, stage, busy[stage], given, lanes);
      busy[stage] = std::max(busy[stage], end);
      last = std::max({last, end, sent});
    }
    given = 0;
  }
  return last;
}

bool UnitTimer::continueFrom(const UnitTimer &before) {
  for (auto &[lane, number] : before.recorder->laneNumbers)
    if (auto known = recorder->laneNumbers.find(lane); known != recorder->laneNumbers.end())
      lanes[known->second] = before.lanes[number];
  recorder->addInsideTables(before.isInsideTables());
  lastUnit = before.lastUnit;
  return !lastUnit || recorder->evaluate(*lastUnit);
}

void UnitTimer::pass(Ticks time) {
  for (Ticks &rest : lanes)
    rest = std::max<Ticks>(0, rest - time);
}

void UnitTimer::restart() {
  pass(maxTicks);
  recorder->restart();
  lastUnit.reset();
}

bool UnitTimer::isInsideTables() const { return recorder->isInsideTables(); }
