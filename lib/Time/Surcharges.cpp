//===- Surcharges.cpp - what tasks take beside each other -----------------===//
#include "stage/Time/Surcharges.h"
#include "TaxQueues.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <set>

using namespace stage;

static Ticks add(Ticks a, Ticks b) { return b < maxTicks - a ? a + b : maxTicks; }

namespace {
class SurchargeWalk {
public:
  SurchargeWalk(const TimedTasks &tasks, unsigned numLanes, const Runtime &runtime)
      : tasks(tasks), runtime(runtime), lanes(numLanes), numLanes(numLanes), places(tasks.size()),
        reach(tasks.size() * numLanes), surcharges(tasks.size()) {
    for (const TimedTask &task : tasks.get())
      alone.push_back(task.alone);
  }

  std::vector<Surcharge> find() {
    addLaunches();
    findReach();
    addSharing();
    addTaxes();
    addComputeBeside();
    return std::move(surcharges);
  }

private:
  static bool isCommunication(const TimedTask &task) {
    return task.kind == TaskKind::Collective || task.kind == TaskKind::Send;
  }

  void addLaunches() {
    Ticks stepHost = runtime.stepHost; // of the last unit that has a kernel
    for (size_t end = tasks.size(), begin; end && (runtime.launch || stepHost); end = begin) {
      for (begin = end; begin && tasks[begin - 1].unit == tasks[end - 1].unit; --begin)
        ;
      LaunchCount count;
      for (size_t task = begin; task < end; ++task)
        if (tasks[task].isKernel)
          count.add(task, alone[task]);
      if (auto more = count.find(runtime.launch, stepHost)) {
        surcharges[more->first].launch = more->second;
        alone[more->first] = add(alone[more->first], more->second);
      }
      if (count.hasKernels())
        stepHost = 0;
    }
  }

  /// Of each lane the number of tasks, up to and with a task, for which it waits, itself among them.
  uint32_t &getReach(size_t task, unsigned lane) { return reach[task * numLanes + lane]; }

  void findReach() {
    for (size_t id = 0; id < tasks.size(); ++id) {
      const TimedTask &task = tasks[id];
      uint32_t *own = reach.data() + id * numLanes;
      for (unsigned before : tasks.getAwaited(id)) {
        const uint32_t *its = reach.data() + before * numLanes;
        for (unsigned lane = 0; lane < numLanes; ++lane)
          own[lane] = std::max(own[lane], its[lane]);
      }
      if (task.kind == TaskKind::Receive)
        continue;
      lanes[task.lane].push_back(id);
      places[id] = uint32_t(lanes[task.lane].size());
      getReach(id, task.lane) = places[id];
      if (task.isTaxed)
        mainLane = task.lane;
    }
  }

  /// Sums of durations of the tasks of a lane that count, one more than there are tasks.
  std::vector<Ticks> sumUp(unsigned lane, llvm::function_ref<bool(const TimedTask &)> counts) const {
    std::vector<Ticks> sums = {0};
    for (size_t id : lanes[lane])
      sums.push_back(add(sums.back(), counts(tasks[id]) ? alone[id] : 0));
    return sums;
  }

  /// Calls `visit` with each task of a lane that counts, and with the range of the tasks of another lane, by places,
  /// that may run beside it: of its unit or a neighbour of that, neither awaited nor waiting.
  void forEachMeeting(unsigned lane, unsigned other, llvm::function_ref<bool(const TimedTask &)> counts,
                      llvm::function_ref<void(size_t id, size_t begin, size_t end)> visit) {
    const std::vector<size_t> &others = lanes[other];
    size_t firstUnit = 0, endUnit = 0, waiting = 0;
    for (size_t id : lanes[lane]) {
      const TimedTask &task = tasks[id];
      while (firstUnit < others.size() && tasks[others[firstUnit]].unit + 1 < task.unit)
        ++firstUnit;
      while (endUnit < others.size() && tasks[others[endUnit]].unit <= task.unit + 1)
        ++endUnit;
      while (waiting < others.size() && getReach(others[waiting], lane) < places[id])
        ++waiting;
      size_t begin = std::max<size_t>(firstUnit, getReach(id, other)), end = std::min(endUnit, waiting);
      if (counts(task) && begin < end)
        visit(id, begin, end);
    }
  }

  /// Levels on which the tasks of a lane communicate.
  std::set<unsigned> listLevels(unsigned lane) const {
    std::set<unsigned> levels;
    for (size_t id : lanes[lane])
      if (isCommunication(tasks[id]))
        levels.insert(tasks[id].level);
    return levels;
  }

  void addSharing() {
    std::vector<std::set<unsigned>> levels;
    for (unsigned lane = 0; lane < numLanes; ++lane)
      levels.push_back(listLevels(lane));
    auto haveCommon = [&](unsigned lane, unsigned other) {
      return llvm::any_of(levels[lane], [&](unsigned level) { return levels[other].count(level); });
    };
    for (unsigned other = 0; other < numLanes; ++other) {
      std::map<unsigned, std::vector<Ticks>> sums; // by level, of those that a lane has in common with this one
      for (unsigned lane = 0; lane < numLanes; ++lane) {
        if (lane == other || !haveCommon(lane, other))
          continue;
        for (unsigned level : levels[other])
          if (levels[lane].count(level) && !sums.count(level))
            sums[level] =
                sumUp(other, [&](const TimedTask &task) { return isCommunication(task) && task.level == level; });
        forEachMeeting(lane, other, isCommunication, [&](size_t id, size_t begin, size_t end) {
          auto found = sums.find(tasks[id].level);
          if (found != sums.end())
            pay(id, std::min(alone[id], found->second[end] - found->second[begin]));
        });
      }
    }
  }

  void addTaxes() {
    std::vector<TaxQueue> queues = makeTaxQueues(numLanes, runtime);
    if (!mainLane || queues.empty())
      return;
    TaxedTasks taxed;
    taxed.computes.assign(lanes[*mainLane].begin(), lanes[*mainLane].end());
    taxed.awaited.resize(taxed.computes.size() * queues.size());
    for (size_t place = 0; place < queues.size(); ++place) {
      const TaxQueue &queue = queues[place];
      std::vector<uint32_t> counts = {0}; // by place in the lane
      std::vector<TaxedTasks::Waiting> &waiting = taxed.waiting.emplace_back();
      for (size_t id : lanes[queue.lane]) {
        if (queue.takes(tasks[id].kind, queue.lane))
          waiting.push_back({unsigned(id), getReach(id, *mainLane)});
        counts.push_back(uint32_t(waiting.size()));
      }
      for (size_t compute = 0; compute < taxed.computes.size(); ++compute)
        taxed.awaited[compute * queues.size() + place] = counts[getReach(taxed.computes[compute], queue.lane)];
    }
    std::vector<Ticks> taken; // with what sharing adds
    for (size_t id = 0; id < tasks.size(); ++id)
      taken.push_back(add(alone[id], surcharges[id].beside));
    findTaxes(taxed, taken, 0, taxed.computes.size(), runtime, queues, [&](unsigned id, Ticks tax) { pay(id, tax); });
  }

  void addComputeBeside() {
    if (!mainLane || !runtime.taxOfCommunication.num)
      return;
    std::vector<Ticks> sums = sumUp(*mainLane, [](const TimedTask &task) { return task.isTaxed; });
    for (unsigned lane = 0; lane < numLanes; ++lane)
      if (lane != *mainLane)
        forEachMeeting(lane, *mainLane, isCommunication, [&](size_t id, size_t begin, size_t end) {
          pay(id, takeShare(runtime.taxOfCommunication, std::min(alone[id], sums[end] - sums[begin])));
        });
  }

  void pay(size_t id, Ticks more) { surcharges[id].beside = add(surcharges[id].beside, more); }

  const TimedTasks &tasks;
  const Runtime &runtime;
  std::vector<std::vector<size_t>> lanes; ///< Their tasks.
  unsigned numLanes;
  std::vector<uint32_t> places; ///< Of tasks in their lanes, from 1.
  std::vector<uint32_t> reach;
  std::optional<unsigned> mainLane;
  std::vector<Ticks> alone; ///< With launches.
  std::vector<Surcharge> surcharges;
};
} // namespace

std::vector<Surcharge> stage::findSurcharges(const TimedTasks &tasks, unsigned numLanes, const Runtime &runtime) {
  return SurchargeWalk(tasks, numLanes, runtime).find();
}
