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
    if (!isOwn) {
      get(TimeAccount::Bubble) += end - begin;
      return note(TimeAccount::Bubble, begin, end);
    }
    TaskRun run = runs.getRun(*cause);
    // What waits for another rank has no other cause here.
    bool hasCause = run.cause && run.cause->classNumber == number;
    Ticks from = hasCause ? std::clamp(run.begin, begin, end) : begin;
    note(charge(*run.facts, end - from), from, end);
    end = from;
    cause = run.cause;
  }
}

TimeAccount TimeAccounts::charge(const TaskFacts &facts, Ticks ticks) {
  std::optional<unsigned> row = findRow(facts);
  if (row)
    getRow(*row).exposed += ticks;
  TimeAccount account = row && getRow(*row).op ? TimeAccount::Exposed
                        : row                  ? TimeAccount::Bubble
                        : !facts.isKernel      ? TimeAccount::Host
                                               : getAccount(facts);
  get(account) += ticks;
  return account;
}

void TimeAccounts::note(TimeAccount account, Ticks begin, Ticks end) const {
  if (waits && begin < end)
    waits(account, begin, end);
}

void TimeAccounts::finish(Ticks free, std::vector<std::pair<Ticks, uint64_t>> later, Ticks step) {
  llvm::sort(later);
  for (auto [end, id] : later)
    if (end > free) {
      wait(ClassTask{number, id}, free, end);
      free = end;
    }
  get(TimeAccount::Bubble) += step - free;
  note(TimeAccount::Bubble, free, step);
}

void TimeAccounts::chargeAll(uint64_t numTasks, Ticks step, llvm::function_ref<void(uint64_t, const TaskRun &)> see) {
  Ticks free = 0; // of the compute stream
  for (uint64_t id = 0; id < numTasks; ++id) {
    TaskRun run = runs.getRun({number, id});
    see(id, run);
    const TaskFacts &facts = *run.facts;
    bool isCounted = facts.kind != TaskKind::Receive && !facts.isWait;
    if (std::optional<unsigned> row = isCounted ? findRow(facts) : std::nullopt) {
      ++getRow(*row).count;
      getRow(*row).taken += run.end - run.begin;
    }
    if (!facts.isTaxed)
      continue;
    if (run.begin > free)
      wait(run.cause, free, run.begin);
    launch(run.more.launch);
    get(TimeAccount::Overlap) += run.more.beside;
    charge(facts, run.end - run.begin - run.more.launch - run.more.beside);
    free = run.end;
  }
  std::vector<std::pair<Ticks, uint64_t>> behind;
  for (uint64_t id = 0; id < numTasks; ++id)
    if (Ticks end = runs.getRun({number, id}).end; end > free)
      behind.emplace_back(end, id);
  finish(free, std::move(behind), step);
}
