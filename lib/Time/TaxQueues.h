//===- TaxQueues.h - what is beside compute, from queues -------*- C++ -*-===//
//
// The rule of taxes (stage/Time/Surcharges.h) for who knows which tasks wait for which: a queue of each kind and lane
// is followed along compute tasks, all of a rank or those of one unit.
//
//   compute    t0 10   t1 10   t2 10          gather g 15: comes when t0 is over, and t2 does not wait for it
//   queue      -       g 15    g 5            beside t1: 10, beside t2: 5
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_TAXQUEUES_H
#define STAGE_LIB_TIME_TAXQUEUES_H

#include "stage/Machine/Runtime.h"
#include "stage/Tasks/Task.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <vector>

namespace stage {

/// The tasks of one kind, copies being one, and lane that may run beside the compute task that comes.
struct TaxQueue {
  TaskKind kind;
  unsigned lane;
  /// Numbers count the tasks of the kind and lane; the first one that was not appended.
  int64_t next = 0;
  struct Entry {
    int64_t number;
    Ticks rest;
  };
  std::deque<Entry> entries;
  /// A task of this kind and lane is one of them.
  bool takes(TaskKind other, unsigned itsLane) const {
    return itsLane == lane && (other == kind || (kind == TaskKind::Load && other == TaskKind::Store));
  }
};
/// Those of all lanes that are taxed, by kind; some may be of no task.
std::vector<TaxQueue> makeTaxQueues(unsigned numLanes, const Runtime &runtime);

/// Compute tasks of the main stream, and what may be in queues beside them. Tasks are known by ids.
struct TaxedTasks {
  std::vector<unsigned> computes; ///< In their order.
  /// By compute task and queue: so many of the queue's tasks it waits for.
  std::vector<uint32_t> awaited;
  struct Waiting {
    unsigned id;
    uint32_t before; ///< So many compute tasks, for which it waits, are over when it comes.
  };
  std::vector<std::vector<Waiting>> waiting; ///< By queue.
};

/// Finds the taxes of compute tasks from `begin` to before `end`. `taken`: what a task takes but for taxes, by id.
/// `queues`: what the compute tasks before have left over; changed to what these leave.
void findTaxes(const TaxedTasks &tasks, llvm::ArrayRef<Ticks> taken, size_t begin, size_t end, const Runtime &runtime,
               std::vector<TaxQueue> &queues, llvm::function_ref<void(unsigned id, Ticks tax)> pay);

/// A share of a time, rounded half up.
Ticks takeShare(const Rational &share, Ticks time);

} // namespace stage

#endif // STAGE_LIB_TIME_TAXQUEUES_H
