//===- TaxQueues.cpp - what is beside compute, from queues ----------------===//
#include "TaxQueues.h"

using namespace stage;

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

Ticks stage::takeShare(const Rational &share, Ticks time) {
  __int128 product = share.num * time;
  return std::min(Ticks((2 * product + share.den) / (2 * share.den)), maxTicks);
}

/// Drops what a compute task waits for, and appends what comes before it.
static void update(TaxQueue &queue, Ticks &length, llvm::ArrayRef<TaxedTasks::Waiting> waiting, size_t awaited,
                   size_t compute, llvm::ArrayRef<Ticks> taken) {
  while (!queue.entries.empty() && queue.entries.front().number < int64_t(awaited)) {
    length -= queue.entries.front().rest;
    queue.entries.pop_front();
  }
  for (; size_t(queue.next) < waiting.size(); ++queue.next) {
    if (size_t(queue.next) < awaited)
      continue;
    const TaxedTasks::Waiting &task = waiting[size_t(queue.next)];
    if (task.before > compute)
      break;
    queue.entries.push_back({queue.next, taken[task.id]});
    length += std::min(taken[task.id], maxTicks - length);
  }
}

static void shorten(TaxQueue &queue, Ticks &length, Ticks time) {
  while (time && !queue.entries.empty()) {
    Ticks &rest = queue.entries.front().rest, passed = std::min(time, rest);
    rest -= passed;
    length -= passed;
    time -= passed;
    if (!rest)
      queue.entries.pop_front();
  }
}

void stage::findTaxes(const TaxedTasks &tasks, llvm::ArrayRef<Ticks> taken, size_t begin, size_t end,
                      const Runtime &runtime, std::vector<TaxQueue> &queues,
                      llvm::function_ref<void(unsigned id, Ticks tax)> pay) {
  llvm::SmallVector<Ticks, 8> lengths(queues.size());
  for (size_t queue = 0; queue < queues.size(); ++queue)
    for (const TaxQueue::Entry &entry : queues[queue].entries)
      lengths[queue] += std::min(entry.rest, maxTicks - lengths[queue]);
  for (size_t compute = begin; compute < end; ++compute) {
    unsigned id = tasks.computes[compute];
    for (size_t queue = 0; queue < queues.size();) {
      // Those of a kind follow each other.
      TaskKind kind = queues[queue].kind;
      Ticks longest = 0;
      for (; queue < queues.size() && queues[queue].kind == kind; ++queue) {
        update(queues[queue], lengths[queue], tasks.waiting[queue], tasks.awaited[compute * queues.size() + queue],
               compute, taken);
        longest = std::max(longest, lengths[queue]);
      }
      if (longest)
        pay(id, takeShare(getTax(runtime, kind), std::min(taken[id], longest)));
    }
    for (auto [queue, length] : llvm::zip(queues, lengths))
      shorten(queue, length, taken[id]);
  }
}
