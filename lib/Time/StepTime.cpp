//===- StepTime.cpp - how long a step takes -------------------------------===//
#include "stage/Time/StepTime.h"
#include "CompiledWalk.h"
#include "MachinePricer.h"
#include "stage/Tasks/Slowness.h"
#include "stage/Time/Diagnostics.h"

using namespace stage;

void stage::reportMissingRate(const Task &task, const Machine &machine, SMLoc loc, llvm::StringRef missing,
                              DiagnosticEngine &diags) {
  diags.report(task.op ? task.op->loc : loc, machine.describe().empty() ? diag::TimeNeedsRate : diag::TimeNeedsEntry)
      << (task.op ? "this " + getName(task.op->kind).str() : "a message between stages")
      << machine.describeMissing(missing);
}

std::optional<Ticks> stage::findDuration(const Task &task, const Machine &machine, const GroupPlace &place,
                                         llvm::StringRef &missing) {
  int64_t bytes = int64_t(task.bytes.resolve({}));
  switch (task.kind) {
  case TaskKind::Compute:
    if (task.isWait && machine.isDeclared())
      return machine.ofMessage(bytes, place, missing);
    if (task.isWait) // what rates alone make of its node
      return machine.ofCompute(1, 1, task.runsOnHost, missing);
    if (task.work)
      return machine.ofWork(*task.work, missing);
    return machine.ofCompute(int64_t(task.flops.resolve({})), bytes, task.runsOnHost, missing);
  case TaskKind::Collective:
    return machine.ofCollective(getCollectiveKind(task.op->kind), bytes, place, missing);
  case TaskKind::Send:
  case TaskKind::Receive:
    return machine.ofMessage(bytes, place, missing);
  case TaskKind::Load:
  case TaskKind::Store:
    return machine.ofCopy(bytes, missing);
  }
  llvm_unreachable("no other kinds");
}

std::string stage::describeOp(const Op &op) {
  std::string type = op.kind == OpKind::Compute ? op.def->name : getName(op.kind).str();
  const Value *value = op.getNumResults() ? op.getResult() : op.getOperand(0);
  const std::string &place = value->path.empty() ? op.scope : value->path;
  return place.empty() ? type : place + " " + type;
}

std::optional<Machine> stage::findUsed(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                       const TaskOptions &options, DiagnosticEngine &diags) {
  int64_t numRanks = 0;
  for (const Program *part : parts) {
    if (!checkSlowRanks(*part->graph, diags) || !checkSteps(*part, options.steps, diags))
      return std::nullopt;
    numRanks += part->graph->mesh.getNumRanks();
  }
  if (!machine.checkNumRanks(numRanks, parts.front()->graph->loc, diags))
    return std::nullopt;
  return machine.usedBy(numRanks);
}

std::optional<StepActivity> stage::findStepTime(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                const Runtime &runtime, const TaskOptions &options,
                                                DiagnosticEngine &diags) {
  std::optional<Machine> used = findUsed(parts, machine, options, diags);
  if (!used)
    return std::nullopt;
  if (parts.size() == 1) {
    CompiledWalk walk(*parts.front(), *used, runtime, options, diags);
    if (CompiledWalk::Outcome outcome = walk.run(); outcome != CompiledWalk::Outcome::Unsupported)
      return outcome == CompiledWalk::Outcome::Done ? std::optional(walk.collect()) : std::nullopt;
  }
  return findStepTimeByTask(parts, machine, runtime, options, diags);
}

std::optional<StepActivity> stage::findStepTimeByTask(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                      const Runtime &runtime, const TaskOptions &asked,
                                                      DiagnosticEngine &diags) {
  std::optional<Machine> used = findUsed(parts, machine, asked, diags);
  if (!used)
    return std::nullopt;
  TaskOptions options = asked;
  options.works = machine.isDeclared();
  MachinePricer pricer(parts, *used, runtime, /*keepsRuns=*/false, diags);
  StepWalk walk(parts, *used, options, pricer, diags);
  pricer.setWalk(walk);
  return walk.run() ? std::optional(walk.collect()) : std::nullopt;
}
