//===- WaitRows.cpp - how long ranks wait for communication ---------------===//
#include "WaitRows.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

Records WaitRow::list(llvm::function_ref<Record::Digits(Ticks)> format) const {
  bool isMessage = subject.empty();
  return {{"operation", "operation", operation},
          {"axes", "", axes},
          {"", "axes", isMessage ? "between stages" : llvm::join(axes, ", ")},
          {isMessage ? "" : "subject", "carries", subject},
          {isMessage ? "" : "phase", "phase", phase},
          {isMessage ? "" : "type", "type", type},
          {"stage", "stage", __int128(stage)},
          {"count", "count", __int128(count)},
          {"seconds", "ms", format(taken)},
          {"exposed_seconds", "exposed", format(exposed)}};
}

std::vector<WaitRow> stage::listWaits(const StageTime &stage, const Subjects &subjects) {
  std::vector<WaitRow> rows;
  for (const CommunicationTime &own : stage.communication) {
    WaitRow row;
    row.stage = stage.stage;
    if (own.op) {
      const Value &carried = *own.op->getOperand(0);
      row.operation = getName(own.op->kind).str();
      row.axes = subjects.listAxisNames(*own.op);
      row.subject = getName(subjects.find(carried)).str();
      row.phase = describePhase(*stage.program->graph, own.op->getBlock()->getPhase()).str();
      row.type = describeTypes(*own.op);
    }
    auto known = llvm::find_if(rows, [&](const WaitRow &other) { return other.isAlike(row); });
    WaitRow &sum = known == rows.end() ? rows.emplace_back(std::move(row)) : *known;
    sum.count += own.count;
    sum.taken += own.taken;
    sum.exposed += own.exposed;
  }
  return rows;
}

std::vector<std::vector<WaitRow>> stage::listWaits(const TimeReport &time) {
  std::map<const Program *, Subjects> subjects;
  std::vector<std::vector<WaitRow>> stages;
  for (const StageTime &stage : time.stages)
    stages.push_back(listWaits(stage, subjects.try_emplace(stage.program, *stage.program->graph).first->second));
  return stages;
}
