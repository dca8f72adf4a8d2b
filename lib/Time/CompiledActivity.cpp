//===- CompiledActivity.cpp - what ranks do while units run ---------------===//
//
// Tasks of a lane that follow each other without a gap are one activity, so that a rank has few in a step.
//
//===----------------------------------------------------------------------===//
#include "CompiledWalk.h"

using namespace stage;

namespace {
/// Activities by lane, whose tasks come in the order in which they run.
class LaneActivities {
public:
  explicit LaneActivities(const UnitCompiler &compiler) : compiler(compiler), lanes(compiler.getNumLanes()) {}

  void add(uint32_t facts, Ticks begin, Ticks end) {
    if (begin == end)
      return;
    std::vector<Activity> &lane = lanes[compiler.getLane(facts)];
    if (lane.empty() || lane.back().end != begin)
      lane.push_back({compiler.getActivityKind(facts), begin, begin});
    lane.back().end = end;
  }
  std::vector<Activity> take() {
    std::vector<Activity> all;
    for (std::vector<Activity> &lane : lanes)
      llvm::append_range(all, lane);
    return all;
  }

private:
  const UnitCompiler &compiler;
  std::vector<std::vector<Activity>> lanes;
};
} // namespace

/// When a receive of a unit was posted. It may be earlier than in the run: there it decided nothing.
Ticks CompiledWalk::getPosted(const UnitView &view, uint32_t task) const {
  Ticks posted = 0;
  for (uint32_t place : view.unit.getAwaited(task))
    if (place >= view.unit.getFirstTask())
      posted = std::max(posted, view.clock.getEnd(view.number, place - view.unit.getFirstTask()));
    else if (const CompiledUnit::Reference &reference = view.unit.references[place]; reference.unit)
      posted = std::max(posted,
                        view.clock.getEnd(view.clock.units.getRelated(view.number)[*reference.unit], reference.offset));
  return posted;
}

std::vector<Activity> CompiledWalk::listActivities(const ClassClock &clock) const {
  LaneActivities ofLanes(clock.compiler);
  std::vector<Activity> arrivals;
  for (size_t number = 0; number < clock.placed.size(); ++number) {
    UnitView view = getView(clock, number);
    const CompiledUnit &unit = view.unit;
    llvm::ArrayRef<Ticks> durations = view.run.charges->durations;
    auto shared = unit.shared.begin();
    auto receive = unit.receives.begin();
    for (uint32_t task = 0; task < unit.getNumTasks(); ++task) {
      Ticks end = clock.getEnd(number, task);
      if (receive != unit.receives.end() && *receive == task) {
        ++receive;
        continue;
      }
      Ticks begin = end - durations[task];
      if (shared != unit.shared.end() && shared->task == task)
        begin = view.run.shared[size_t(shared++ - unit.shared.begin())].first;
      ofLanes.add(unit.facts[task], begin, end);
    }
    auto arrive = [&](uint32_t task, Ticks sent) {
      arrivals.push_back(
          {ActivityKind::Communication, std::max(sent, getPosted(view, task)), clock.getEnd(number, task)});
    };
    for (size_t message = 0; message < unit.received.size(); ++message)
      arrive(unit.received[message].task, getRun(view.senders[message]).begin);
    for (auto [task, send] : unit.localSends)
      arrive(task, clock.getEnd(number, send) - durations[send]);
  }
  std::vector<Activity> all = ofLanes.take();
  llvm::append_range(all, arrivals);
  return all;
}

StepActivity CompiledWalk::collect() const {
  int64_t numRanks = connections.program.graph->mesh.getNumRanks();
  StepActivity result = {last, size_t(numRanks), {}};
  for (const ClassClock &clock : clocks)
    result.ranks.push_back({{}, summarize(listActivities(clock), last)});
  for (int64_t rank = 0; rank < numRanks; ++rank)
    result.ranks[connections.classes.find(rank)].first.push_back(uint32_t(connections.program.firstRank + rank));
  return result;
}
