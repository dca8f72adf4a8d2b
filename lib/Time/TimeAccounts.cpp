//===- TimeAccounts.cpp - where the time of a rank goes -------------------===//
#include "TimeAccounts.h"

using namespace stage;

TimeAccount TimeAccounts::getAccount(const TaskFacts &facts) {
  return facts.isOptimizer                     ? TimeAccount::Optimizer
         : facts.work == WorkKind::Contraction ? TimeAccount::Products
         : facts.work == WorkKind::Attention   ? TimeAccount::Attention
                                               : TimeAccount::Elementwise;
}

std::optional<unsigned> TimeAccounts::findRow(const TaskFacts &facts) {
  bool communicates =
      facts.kind == TaskKind::Collective || facts.kind == TaskKind::Send || facts.kind == TaskKind::Receive;
  if (!communicates && !facts.isWait)
    return std::nullopt;
  auto [it, isNew] = rows.try_emplace(facts.op, unsigned(time.communication.size()));
  if (isNew)
    time.communication.push_back({facts.op, 0, 0, 0});
  return it->second;
}

void TimeAccounts::wait(std::optional<ClassTask> cause, Ticks begin, Ticks end) {
  while (begin < end) {
    bool isOwn = cause && cause->classNumber == number;
    if (!isOwn)
      return void(get(TimeAccount::Bubble) += end - begin);
    TaskRun run = runs.getRun(*cause);
    // What waits for another rank has no other cause here.
    bool hasCause = run.cause && run.cause->classNumber == number;
    Ticks from = hasCause ? std::clamp(run.begin, begin, end) : begin;
    charge(*run.facts, end - from);
    end = from;
    cause = run.cause;
  }
}

void TimeAccounts::charge(const TaskFacts &facts, Ticks ticks) {
  std::optional<unsigned> row = findRow(facts);
  if (row)
    getRow(*row).exposed += ticks;
  get(row && getRow(*row).op ? TimeAccount::Exposed
      : row                  ? TimeAccount::Bubble
      : !facts.isKernel      ? TimeAccount::Host
                             : getAccount(facts)) += ticks;
}

void TimeAccounts::finish(Ticks free, std::vector<std::pair<Ticks, uint64_t>> later, Ticks step) {
  llvm::sort(later);
  for (auto [end, id] : later)
    if (end > free) {
      wait(ClassTask{number, id}, free, end);
      free = end;
    }
  get(TimeAccount::Bubble) += step - free;
}
