//===- Surcharges.h - what tasks take beside each other ---------*- C++ -*-===//
//
// Problem: two collectives on one link, or a collective beside compute, take longer than alone. What each takes must
// not depend on when others run: else time would be no longest path, and a faster network could make a step slower.
//
//   a backward ends: reduce_scatter between nodes 6 ms, send between nodes 1, all_gather inside the node 2, compute 5,
//   all beside each other, with a tax of 0.30 on compute:
//
//   send            1 + min(1, 6) = 2        shares the network's port with the reduction
//   reduce_scatter  6 + min(6, 1) = 7
//   all_gather      2                        alone on its level
//   compute         5 + 0.30 * 5 = 6.5       some collective runs beside all of it
//
// Rules, for the tasks of one rank, from durations alone:
//
//   Launch. No unit takes less than launching its kernels: what is missing is added to its last compute task.
//   A task that takes no time is done by another one's kernel.
//   Step. What the host does once per step is added to the last kernel of all.
//   Sharing. Two tasks of communication may meet if they are on different streams, on the same level of the network, of
//     the same unit or of neighbouring ones, and neither waits for the other. Of each other stream a task pays for all
//     that it may meet there, and at most once its own duration. Tasks of two interleaved units all have the number
//     of the first unit. So a pair and the pair behind it, numbers 3 and 5 for example, are no neighbours.
//   Tax. Before a compute task of the main stream all collectives are dropped from the queues of their streams up to
//     the last one for which it waits, and those are appended whose last compute task before them is over. The longest
//     queue, as far as it lasts beside the task, is taxed; each queue gets as much shorter as the task lasts. Sends and
//     copies have queues and taxes of their own.
//   Communication beside compute. A share of the compute that may run beside a collective or send, and at most of its
//     own duration, is added to it.
//
// Algorithm: what a task waits for is, on each stream, all tasks up to one of them; what waits for it, all from one on.
// One pass finds the former for all tasks, sums over streams are looked up, and one pass along compute keeps the
// queues. Time and memory are linear in tasks times streams.
//
// Limits: receives take no part. What goes in and what goes out of a rank share a level. A collective that waits for
// another rank charges nothing meanwhile.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_SURCHARGES_H
#define STAGE_TIME_SURCHARGES_H

#include "stage/Machine/Runtime.h"
#include "stage/Tasks/Task.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace stage {

/// A task of a rank; those of a lane run one after the other. Ids are places in the list.
struct TimedTask {
  TaskKind kind = TaskKind::Compute;
  bool isTaxed = false;  ///< Compute of the device, on the main stream: of one lane, and of no other task of it.
  bool isKernel = false; ///< Compute of the device.
  unsigned lane = 0;     ///< Receives are on none.
  unsigned unit = 0;     ///< Ascending.
  unsigned level = 0;    ///< Of the network.
  Ticks alone = 0;       ///< Its price.
  size_t endAwaited = 0; ///< Behind the last one for which it waits, among those of all tasks.
};

/// Tasks of a rank in their order, and for which earlier ones each waits.
class TimedTasks {
public:
  /// A task that waits for nothing yet. It stands until the next one is added.
  TimedTask &add() {
    TimedTask &task = list.emplace_back();
    task.endAwaited = awaited.size();
    return task;
  }
  /// The last task waits for an earlier one.
  void wait(size_t earlier) {
    awaited.push_back(unsigned(earlier));
    list.back().endAwaited = awaited.size();
  }
  size_t size() const { return list.size(); }
  const TimedTask &operator[](size_t id) const { return list[id]; }
  llvm::ArrayRef<TimedTask> get() const { return list; }
  llvm::ArrayRef<unsigned> getAwaited(size_t id) const {
    size_t begin = id ? list[id - 1].endAwaited : 0;
    return llvm::ArrayRef(awaited).slice(begin, list[id].endAwaited - begin);
  }
  /// For who knows the surcharges.
  void forgetAwaited() { awaited = std::vector<unsigned>(); }

private:
  std::vector<TimedTask> list;
  std::vector<unsigned> awaited;
};

/// What a task takes beyond its price.
struct Surcharge {
  Ticks launch = 0; ///< Of compute: the unit's launches that it does not cover, and the host's part of the step.
  Ticks beside = 0; ///< For what runs beside it: the tax of compute, the shared link of communication.
  bool operator==(const Surcharge &other) const = default;
};

/// The surcharge of each task. `numLanes`: above all lanes.
std::vector<Surcharge> findSurcharges(const TimedTasks &tasks, unsigned numLanes, const Runtime &runtime);

/// What the launches of a unit's kernels take beyond these.
class LaunchCount {
public:
  /// A kernel, by its number. What takes no time is done by another one's kernel.
  void add(size_t number, Ticks alone) {
    if (!alone)
      return;
    compute += std::min(alone, maxTicks - compute);
    ++kernels;
    last = number;
  }
  bool hasKernels() const { return kernels; }
  /// The last kernel, and what it takes longer for launches and for `stepHost`; nothing if kernels take as long as
  /// launches, and the host does nothing else.
  std::optional<std::pair<size_t, Ticks>> find(Ticks launch, Ticks stepHost) const {
    __int128 more = std::max<__int128>(__int128(kernels) * launch - compute, 0) + stepHost;
    if (!kernels || !more)
      return std::nullopt;
    return std::pair(last, Ticks(std::min<__int128>(more, maxTicks)));
  }

private:
  Ticks compute = 0;
  int64_t kernels = 0;
  size_t last = 0;
};

} // namespace stage

#endif // STAGE_TIME_SURCHARGES_H
