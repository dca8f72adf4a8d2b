//===- TimeReport.h - where the time of a step goes ------------*- C++ -*-===//
//
// Problem: how long is a step, what do ranks do meanwhile, and what would make it shorter?
//
//   compute stream of a rank   | product 4 | waits for all_gather 1 | product 4 + 1 tax | waits for a message 2 |
//   products 8, overlap 1, exposed 1 (all_gather over tp), bubble 2; together the step, 12
//
// Rule: each tick of a rank's compute stream is of one account, so that accounts add up to the step, exactly:
//
//   products, attention, element-wise, optimizer    compute tasks at their prices
//   overlap    what they take longer because something runs beside them
//   exposed    waiting for a collective, or for a neighbour in a ring; also while it waits for other ranks
//   bubble     waiting for a message of another stage, and what is left before the first and behind the last unit
//   host       waiting for copies, for what the host computes, and for kernels to be launched
//
// A wait is of the task that ended last of those that were waited for; as long as that one itself waited for a task of
// the rank, of that one. So a gather that begins when a message has come is exposed while it runs, and what was before
// is bubble. Behind the last compute task a rank waits for its own collectives, and then for other ranks.
//
// The critical path is a chain of tasks, each of which begins when the one before it ends, from the beginning of the
// step to its end.
//
// Algorithm: units that have the same tasks are made once, and each is charged as it is placed in time (CompiledWalk.h
// in lib/Time). Of parts of a workload, one pass over the tasks of each class of ranks, whose times StepWalk has kept.
// Both give the same report, to the tick.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_TIMEREPORT_H
#define STAGE_TIME_TIMEREPORT_H

#include "stage/Machine/Machine.h"
#include "stage/Machine/Runtime.h"
#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/StepTraits.h"

namespace stage {

enum class TimeAccount : uint8_t { Products, Attention, Elementwise, Optimizer, Overlap, Exposed, Bubble, Host };
constexpr unsigned numTimeAccounts = 8;
/// `products`, `element-wise`.
llvm::StringRef getName(TimeAccount account);

/// What one op communicates, or all messages, of a rank in a step.
struct CommunicationTime {
  const Op *op = nullptr; ///< Null: messages between stages or parts.
  int64_t count = 0;
  Ticks taken = 0;   ///< Their durations, added up.
  Ticks exposed = 0; ///< Waiting for them, or for ranks that come to them later. Of messages: bubble.
};

/// What the ranks of a stage do whose compute stream is busiest.
struct StageTime {
  const Program *program = nullptr; ///< The part of a workload.
  unsigned stage = 0;
  int64_t rank = 0; ///< The lowest of them, counted over all parts.
  Ticks accounts[numTimeAccounts] = {};
  Ticks launch = 0; ///< Of the host's account: for kernels to be launched, and once per step.
  std::vector<CommunicationTime> communication; ///< In the order of first use.
  Ticks get(TimeAccount account) const { return accounts[unsigned(account)]; }
  Ticks getCompute() const {
    return get(TimeAccount::Products) + get(TimeAccount::Attention) + get(TimeAccount::Elementwise);
  }
  /// All that the compute stream does not wait.
  Ticks getBusy() const { return getCompute() + get(TimeAccount::Optimizer) + get(TimeAccount::Overlap); }
};

/// Tasks of one op, or messages, on the critical path.
struct PathLink {
  std::string name; ///< `layers.mlp.down linear`, `message to stage 1`.
  unsigned stage = 0;
  int64_t count = 0;
  Ticks ticks = 0;
};

struct TimeReport {
  Ticks step = 0;
  std::string machine, runtime; ///< With changes.
  bool insideTables = false;    ///< Every product, attention and collective lies inside the machine's tables.
  bool isAssumed = false;       ///< Nobody says what some product reaches of its roof.
  std::vector<StageTime> stages;
  std::vector<PathLink> path; ///< The longest first; all together take the step.
  __int128 busy = 0;          ///< Of all ranks together.
  StepTraits traits;
  uint64_t numPlaced = 0; ///< Units that were placed whole, and tasks that were placed one by one.
};

/// The time of a step of a program, or of the parts of a workload. The machine must be a declared one. Nothing after a
/// report.
std::optional<TimeReport> findTimeReport(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                         const Runtime &runtime, DiagnosticEngine &diags);
/// Its length alone.
std::optional<Ticks> findStep(llvm::ArrayRef<const Program *> parts, const Machine &machine, const Runtime &runtime,
                              DiagnosticEngine &diags);
/// The same as findTimeReport, always from task to task, for tests.
std::optional<TimeReport> findTimeReportByTask(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                               const Runtime &runtime, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TIME_TIMEREPORT_H
