//===- Surcharges.cpp - what tasks take beside each other -----------------===//
#include "stage/Time/Surcharges.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <deque>
#include <map>

using namespace stage;

/// A share of a time, rounded half up.
static Ticks multiply(const Rational &share, Ticks time) {
  __int128 product = share.num * time;
  return std::min(Ticks((2 * product + share.den) / (2 * share.den)), maxTicks);
}

static Ticks add(Ticks a, Ticks b) { return b < maxTicks - a ? a + b : maxTicks; }

namespace {
class SurchargeWalk {
public:
  SurchargeWalk(llvm::ArrayRef<TimedTask> tasks, unsigned numLanes, const Runtime &runtime)
      : tasks(tasks), runtime(runtime), lanes(numLanes), numLanes(numLanes), places(tasks.size()),
        reach(tasks.size() * numLanes), surcharges(tasks.size()) {
    for (const TimedTask &task : tasks)
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
    for (size_t begin = 0, end; begin < tasks.size() && runtime.launch; begin = end) {
      Ticks compute = 0;
      int64_t kernels = 0;
      std::optional<size_t> last;
      for (end = begin; end < tasks.size() && tasks[end].unit == tasks[begin].unit; ++end) {
        if (!tasks[end].isKernel)
          continue;
        compute = add(compute, alone[end]);
        ++kernels;
        last = end;
      }
      __int128 launches = __int128(kernels) * runtime.launch;
      if (!last || launches <= compute)
        continue;
      surcharges[*last].launch = Ticks(std::min<__int128>(launches - compute, maxTicks));
      alone[*last] = add(alone[*last], surcharges[*last].launch);
    }
  }

  /// Of each lane the number of tasks, up to and with a task, for which it waits, itself among them.
  uint32_t &getReach(size_t task, unsigned lane) { return reach[task * numLanes + lane]; }

  void findReach() {
    for (size_t id = 0; id < tasks.size(); ++id) {
      const TimedTask &task = tasks[id];
      for (unsigned before : task.awaited)
        for (unsigned lane = 0; lane < numLanes; ++lane)
          getReach(id, lane) = std::max(getReach(id, lane), getReach(before, lane));
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

  /// Tasks of one kind and lane that may run beside the compute task that comes.
  struct Queue {
    TaskKind kind;
    unsigned lane;
    std::vector<size_t> tasks; ///< All of the lane.
    size_t next = 0;           ///< The first that was not appended.
    struct Entry {
      uint32_t place;
      Ticks rest;
    };
    std::deque<Entry> entries;
    Ticks length = 0;
  };

  const Rational &getTax(TaskKind kind) const {
    return kind == TaskKind::Collective ? runtime.taxOfCollectives
           : kind == TaskKind::Send     ? runtime.taxOfSends
                                        : runtime.taxOfCopies;
  }

  std::vector<Queue> makeQueues() const {
    std::vector<Queue> queues;
    for (TaskKind kind : {TaskKind::Collective, TaskKind::Send, TaskKind::Load})
      for (unsigned lane = 0; lane < numLanes && getTax(kind).num; ++lane) {
        Queue queue{kind, lane, {}, 0, {}, 0};
        for (size_t id : lanes[lane])
          if (tasks[id].kind == kind || (kind == TaskKind::Load && tasks[id].kind == TaskKind::Store))
            queue.tasks.push_back(id);
        if (!queue.tasks.empty())
          queues.push_back(std::move(queue));
      }
    return queues;
  }

  void addTaxes() {
    if (!mainLane)
      return;
    std::vector<Queue> queues = makeQueues();
    for (size_t id : lanes[*mainLane]) {
      if (!tasks[id].isTaxed)
        continue;
      std::map<TaskKind, Ticks> longest;
      for (Queue &queue : queues) {
        update(queue, id);
        longest[queue.kind] = std::max(longest[queue.kind], queue.length);
      }
      for (auto [kind, length] : longest)
        pay(id, multiply(getTax(kind), std::min(alone[id], length)));
      for (Queue &queue : queues)
        shorten(queue, alone[id]);
    }
  }

  /// Drops what a compute task waits for, and appends what is before it in time.
  void update(Queue &queue, size_t id) {
    uint32_t over = getReach(id, queue.lane);
    while (!queue.entries.empty() && queue.entries.front().place <= over) {
      queue.length -= queue.entries.front().rest;
      queue.entries.pop_front();
    }
    for (; queue.next < queue.tasks.size(); ++queue.next) {
      size_t task = queue.tasks[queue.next];
      if (places[task] <= over)
        continue; // the compute task waits for it
      if (getReach(task, *mainLane) >= places[id])
        break;
      Ticks taken = add(alone[task], surcharges[task].beside); // with what sharing adds
      queue.entries.push_back({places[task], taken});
      queue.length = add(queue.length, taken);
    }
  }

  static void shorten(Queue &queue, Ticks time) {
    while (time && !queue.entries.empty()) {
      Ticks passed = std::min(time, queue.entries.front().rest);
      queue.entries.front().rest -= passed;
      queue.length -= passed;
      time -= passed;
      if (!queue.entries.front().rest)
        queue.entries.pop_front();
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

  llvm::ArrayRef<TimedTask> tasks;
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

std::vector<Surcharge> stage::findSurcharges(llvm::ArrayRef<TimedTask> tasks, unsigned numLanes,
                                             const Runtime &runtime) {
  return SurchargeWalk(tasks, numLanes, runtime).find();
}
