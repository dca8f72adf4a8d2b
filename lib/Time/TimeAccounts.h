//===- TimeAccounts.h - where the time of a rank goes ----------*- C++ -*-===//
//
// The accounts of stage/Time/TimeReport.h for a class of ranks. Who knows when tasks ran hands on what its compute
// stream did and waited for, in the order of the rank.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_TIMEACCOUNTS_H
#define STAGE_LIB_TIME_TIMEACCOUNTS_H

#include "StepRuns.h"
#include "stage/Time/TimeReport.h"
#include <functional>

namespace stage {

class TimeAccounts {
public:
  /// Is told of each wait of the compute stream: its account, and when it was.
  using WaitSink = std::function<void(TimeAccount account, Ticks begin, Ticks end)>;
  TimeAccounts(const StepRuns &runs, unsigned classNumber, WaitSink waits = nullptr)
      : runs(runs), number(classNumber), waits(std::move(waits)) {}

  Ticks &get(TimeAccount account) { return time.accounts[unsigned(account)]; }
  /// A kernel is launched so much later than the device could begin it.
  void launch(Ticks ticks) {
    get(TimeAccount::Host) += ticks;
    time.launch += ticks;
  }
  /// Of compute on the device that is no wait.
  static TimeAccount getAccount(const TaskFacts &facts);
  /// The number of the row of a collective, of a permute's receive or send, or of a message, which is new if no task
  /// has had it; nothing for what computes or copies. A wait behind a message has the row of messages.
  std::optional<unsigned> findRow(const TaskFacts &facts);
  CommunicationTime &getRow(unsigned row) { return time.communication[row]; }

  /// The compute stream has waited from `begin` to `end` for a task of the class, which ended then. While that one
  /// waited for another one, that is what was waited for.
  void wait(std::optional<ClassTask> cause, Ticks begin, Ticks end);
  /// So many ticks of waiting are for a task. Behind a blocking message they are for the message. Returns their
  /// account.
  TimeAccount charge(const TaskFacts &facts, Ticks ticks);
  /// Behind the last compute task, which ended at `free`: of what still runs the rank waits for the next that ends.
  /// `later`: ends and ids of what ends behind it, in any order.
  void finish(Ticks free, std::vector<std::pair<Ticks, uint64_t>> later, Ticks step);
  /// All of this for a class whose tasks have all run, each of which is shown to `see` in the order of the rank.
  void chargeAll(
      uint64_t numTasks, Ticks step,
      llvm::function_ref<void(uint64_t id, const TaskRun &)> see = [](uint64_t, const TaskRun &) {});
  StageTime take() { return std::move(time); }

private:
  /// Tells of a wait.
  void note(TimeAccount account, Ticks begin, Ticks end) const;

  const StepRuns &runs;
  unsigned number;
  WaitSink waits;
  StageTime time;
  llvm::DenseMap<const Op *, unsigned> rows; ///< Of communication; of messages there is no op.
};

} // namespace stage

#endif // STAGE_LIB_TIME_TIMEACCOUNTS_H
