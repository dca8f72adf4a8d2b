//===- Task.h - one thing that a rank does ---------------------*- C++ -*-===//
//
// Between a program and traces stands, for each class of ranks, a list of tasks (ClassTasks.h): what is computed, sent
// or copied, on which stream, with whom, and what it waits for. CodeGen encodes tasks as nodes of traces.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_TASK_H
#define STAGE_TASKS_TASK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace stage {

class Op;
struct Work;

/// A number of a task: the same on all ranks of the class, or the value of a slot, which each rank has its own of.
class TaskValue {
public:
  constexpr TaskValue(uint64_t constant = 0) : number(constant) {}
  static constexpr TaskValue slot(unsigned index) {
    TaskValue value(index);
    value.slotted = true;
    return value;
  }
  constexpr bool isSlot() const { return slotted; }
  constexpr unsigned getSlot() const { return unsigned(number); }
  /// The number, with slots looked up in `slots`.
  uint64_t resolve(llvm::ArrayRef<uint64_t> slots) const { return slotted ? slots[number] : number; }

private:
  uint64_t number;
  bool slotted = false;
};

enum class TaskKind : uint8_t {
  Compute,
  Collective, ///< Of the ranks of a group; which one: the kind of its op.
  Send,       ///< To one rank.
  Receive,    ///< From one rank.
  Load,       ///< A copy from the host.
  Store,      ///< A copy to the host.
};

/// What a kind does not use has its default. What is pointed to lives as long as the call that hands a task on.
struct Task {
  TaskKind kind = TaskKind::Compute;
  uint64_t id = 0; ///< Dense, in the order of the program: what a task waits for has smaller ids.
  /// Null for what stages and parts send each other, and for waits.
  const Op *op = nullptr;
  llvm::StringRef name;   ///< Empty: tasks have none.
  llvm::StringRef opType; ///< What names have in common: `linear`, `all_gather`, `send`.

  llvm::ArrayRef<uint64_t> data;  ///< Ids of the tasks whose results it takes, ascending.
  llvm::ArrayRef<uint64_t> order; ///< Ids of those behind which it runs for other reasons, ascending.
  uint64_t stream = 0;            ///< Number of a stream that the graph declares, from 1; 0: that of its kind.
  bool runsOnHost = false;
  /// Compute of no op, that stands behind a send to `peer` of `bytes` and takes as long. It does and touches nothing.
  bool isWait = false;

  TaskValue flops = 1;           ///< Compute: at least 1.
  TaskValue otherFlops = 0;      ///< Among them, in a task of another class: those of class other.
  TaskValue recomputedFlops = 0; ///< Among them: those that a fused backward computes again.
  TaskValue bytes;               ///< Read and written, copied, sent, or put in by a member of a group.
  /// Compute, where TaskOptions::works: what a price depends on, of a rank that is not slow.
  const Work *work = nullptr;

  TaskValue group; ///< Collective: number of the group; 0: all ranks.
  /// Collective: per dimension of the network, whether members of the group differ there; empty: nobody says so.
  llvm::ArrayRef<uint8_t> networkDims;
  TaskValue peer; ///< Send, Receive, a wait: a rank.
  TaskValue tag;  ///< Of a message; of a collective: how many its group had before.

  bool isMessage() const { return kind == TaskKind::Send || kind == TaskKind::Receive; }
  /// Its price is that of a message.
  bool isPricedAsMessage() const { return isMessage() || isWait; }
  bool isCopy() const { return kind == TaskKind::Load || kind == TaskKind::Store; }
};

} // namespace stage

#endif // STAGE_TASKS_TASK_H
