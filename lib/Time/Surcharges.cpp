//===- Surcharges.cpp - what tasks take beside each other -----------------===//
#include "stage/Time/Surcharges.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>

using namespace stage;

/// A share of a time, rounded half up.
static Ticks multiply(const Rational &share, Ticks time) {
  __int128 product = share.num * time;
  return std::min(Ticks((2 * product + share.den) / (2 * share.den)), maxTicks);
}

static Ticks add(Ticks a, Ticks b) { return b < maxTicks - a ? a + b : maxTicks; }

static const Rational &getTax(const Runtime &runtime, TaskKind kind) {
  return kind == TaskKind::Collective ? runtime.taxOfCollectives
         : kind == TaskKind::Send     ? runtime.taxOfSends
                                      : runtime.taxOfCopies;
}

std::vector<TaxQueue> stage::makeTaxQueues(unsigned numLanes, const Runtime &runtime) {
  std::vector<TaxQueue> queues;
  for (TaskKind kind : {TaskKind::Collective, TaskKind::Send, TaskKind::Load})
    for (unsigned lane = 0; lane < numLanes && getTax(runtime, kind).num; ++lane)
      queues.push_back({kind, lane});
  return queues;
}

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
    std::vector<TaxQueue> queues = makeTaxQueues(numLanes, runtime);
    addTaxes(queues, std::nullopt);
    addComputeBeside();
    return std::move(surcharges);
  }

  std::vector<Ticks> findTaxes(std::vector<TaxQueue> &queues, unsigned unit) {
    findReach();
    addTaxes(queues, unit);
    std::vector<Ticks> taxes;
    for (const Surcharge &each : surcharges)
      taxes.push_back(each.beside);
    return taxes;
  }

private:
  static bool isCommunication(const TimedTask &task) {
    return task.kind == TaskKind::Collective || task.kind == TaskKind::Send;
  }

  void addLaunches() {
    for (size_t begin = 0, end; begin < tasks.size() && runtime.launch; begin = end) {
      LaunchCount count;
      for (end = begin; end < tasks.size() && tasks[end].unit == tasks[begin].unit; ++end)
        if (tasks[end].isKernel)
          count.add(end, alone[end]);
      if (auto more = count.find(runtime.launch)) {
        surcharges[more->first].launch = more->second;
        alone[more->first] = add(alone[more->first], more->second);
      }
    }
  }

  /// Of each lane the number of tasks, up to and with a task, for which it waits, itself among them.
  uint32_t &getReach(size_t task, unsigned lane) { return reach[task * numLanes + lane]; }

  void findReach() {
    for (size_t id = 0; id < tasks.size(); ++id) {
      const TimedTask &task = tasks[id];
      uint32_t *own = &getReach(id, 0);
      for (unsigned before : tasks.getAwaited(id)) {
        const uint32_t *its = &getReach(before, 0);
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

  void addSharing() {
    for (unsigned other = 0; other < numLanes; ++other) {
      std::map<unsigned, std::vector<Ticks>> sums; // by level
      for (size_t id : lanes[other])
        if (isCommunication(tasks[id]) && !sums.count(tasks[id].level))
          sums[tasks[id].level] = sumUp(
              other, [&](const TimedTask &task) { return isCommunication(task) && task.level == tasks[id].level; });
      for (unsigned lane = 0; lane < numLanes && !sums.empty(); ++lane)
        if (lane != other)
          forEachMeeting(lane, other, isCommunication, [&](size_t id, size_t begin, size_t end) {
            auto found = sums.find(tasks[id].level);
            if (found != sums.end())
              pay(id, std::min(alone[id], found->second[end] - found->second[begin]));
          });
    }
  }

  /// A queue, and the tasks that it takes.
  struct Queue {
    TaxQueue &state;
    std::vector<size_t> tasks;
    Ticks length = 0;
  };

  /// Of compute tasks, of all units or of one.
  void addTaxes(std::vector<TaxQueue> &states, std::optional<unsigned> unit) {
    if (!mainLane)
      return;
    std::vector<Queue> queues;
    for (TaxQueue &state : states) {
      std::vector<size_t> taken;
      llvm::copy_if(lanes[state.lane], std::back_inserter(taken),
                    [&](size_t id) { return state.takes(tasks[id].kind, state.lane); });
      if (taken.empty() && state.entries.empty())
        continue;
      queues.push_back({state, std::move(taken)});
      for (const TaxQueue::Entry &entry : state.entries)
        queues.back().length = add(queues.back().length, entry.rest);
    }
    for (size_t id : lanes[*mainLane]) {
      if (!tasks[id].isTaxed || (unit && tasks[id].unit != *unit))
        continue;
      // Queues of a kind follow each other.
      for (auto queue = queues.begin(); queue != queues.end();) {
        TaskKind kind = queue->state.kind;
        Ticks longest = 0;
        for (; queue != queues.end() && queue->state.kind == kind; ++queue) {
          update(*queue, id);
          longest = std::max(longest, queue->length);
        }
        if (longest)
          pay(id, multiply(getTax(runtime, kind), std::min(alone[id], longest)));
      }
      for (Queue &queue : queues)
        shorten(queue, alone[id]);
    }
  }

  /// Drops what a compute task waits for, and appends what is before it in time.
  void update(Queue &queue, size_t id) {
    TaxQueue &state = queue.state;
    uint32_t over = getReach(id, state.lane);
    auto isOver = [&](const TaxQueue::Entry &entry) {
      return size_t(entry.number) < queue.tasks.size() && places[queue.tasks[size_t(entry.number)]] <= over;
    };
    while (!state.entries.empty() && isOver(state.entries.front())) {
      queue.length -= state.entries.front().rest;
      state.entries.pop_front();
    }
    for (; size_t(state.next) < queue.tasks.size(); ++state.next) {
      size_t task = queue.tasks[size_t(state.next)];
      if (places[task] <= over)
        continue; // the compute task waits for it
      if (getReach(task, *mainLane) >= places[id])
        break;
      Ticks taken = add(alone[task], surcharges[task].beside); // with what sharing adds
      state.entries.push_back({state.next, taken});
      queue.length = add(queue.length, taken);
    }
  }

  static void shorten(Queue &queue, Ticks time) {
    std::deque<TaxQueue::Entry> &entries = queue.state.entries;
    while (time && !entries.empty()) {
      Ticks passed = std::min(time, entries.front().rest);
      entries.front().rest -= passed;
      queue.length -= passed;
      time -= passed;
      if (!entries.front().rest)
        entries.pop_front();
    }
  }

  void addComputeBeside() {
    if (!mainLane || !runtime.taxOfCommunication.num)
      return;
    std::vector<Ticks> sums = sumUp(*mainLane, [](const TimedTask &task) { return task.isTaxed; });
    for (unsigned lane = 0; lane < numLanes; ++lane)
      if (lane != *mainLane)
        forEachMeeting(lane, *mainLane, isCommunication, [&](size_t id, size_t begin, size_t end) {
          pay(id, multiply(runtime.taxOfCommunication, std::min(alone[id], sums[end] - sums[begin])));
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

std::vector<Ticks> stage::findTaxes(const TimedTasks &tasks, unsigned numLanes, const Runtime &runtime, unsigned unit,
                                    std::vector<TaxQueue> &queues) {
  return SurchargeWalk(tasks, numLanes, runtime).findTaxes(queues, unit);
}
