//===- MemoryCurve.cpp - what a rank holds, node by node ------------------===//
#include "MemoryCurve.h"
#include "stage/Time/StepTime.h"

using namespace stage;

MemoryCurve::MemoryCurve(const MemoryTimeline &timeline, const StageMemory &stage) : timeline(timeline), stage(stage) {
  if (timeline.step)
    findTimes();
}

const StageProgram &MemoryCurve::getStage() const { return timeline.report->program->stages[stage.stage]; }

std::string MemoryCurve::getUnitName(size_t unit) const {
  return timeline.report->program->getUnitName(getStage().units[unit]);
}

void MemoryCurve::findTimes() {
  unsigned number = 0;
  while (timeline.step->getTasks(number).getStage().stage != stage.stage)
    ++number;
  const auto &units = timeline.step->getTasks(number).getUnits();
  uint64_t numNodes = 0;
  for (const PlacedUnit &unit : units) {
    firsts.push_back(numNodes);
    numNodes += unit.layout->getNumNodes();
  }
  times.resize(numNodes);
  timeline.step->visit(
      number,
      [&](const TimedRun &run) {
        times[firsts[run.unit] + run.node] = {run.begin, run.end, run.lane.isMain()};
      },
      [](TimeAccount, Ticks, Ticks) {});
}

void MemoryCurve::allocate(unsigned number, const AllocatedTensor &tensor) {
  if (number >= tensors.size())
    tensors.resize(number + 1);
  tensors[number] = {tensor.kind, tensor.bytes};
  use[tensor.kind] += tensor.bytes;
}

void MemoryCurve::free(unsigned number) {
  use[tensors[number].first] -= tensors[number].second;
  rest = use;
}

void MemoryCurve::reclassify(unsigned number, MemoryClass kind) {
  use[tensors[number].first] -= tensors[number].second;
  tensors[number].first = kind;
  use[kind] += tensors[number].second;
}

void MemoryCurve::run(const NodePlace &place) {
  Ticks end = now;
  if (times.empty()) {
    end = now + 1;
  } else if (const Times &known = times[firsts[place.unit] + place.node]; known.isMain) {
    now = known.begin;
    end = known.end;
  }
  show({place, now, end, use, rest});
  now = end;
  rest = use;
}

void MemoryCurve::walk(DiagnosticEngine &diags) {
  walkAllocations(*timeline.report->program, getStage(), stage.coordinates, timeline.memory, diags, *this);
  finish(now, use);
}

std::string stage::describeNode(const NodePlace &place) { return place.op ? describeOp(*place.op) : "message"; }
