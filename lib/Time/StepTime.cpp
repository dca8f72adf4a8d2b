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

/// Ranks are those of the mesh.
static SMLoc getMeshPlace(const Graph &graph) {
  for (const Axis &axis : graph.mesh.getAxes())
    if (axis.loc.isValid())
      return axis.loc;
  return graph.loc;
}

std::vector<TimedPart> stage::findUsed(llvm::ArrayRef<TimedPart> parts, const TaskOptions &options,
                                       DiagnosticEngine &diags) {
  for (const TimedPart &part : parts)
    if (!checkSlowRanks(*part.program->graph, diags) || !checkSteps(*part.program, options.steps, diags))
      return {};
  std::vector<TimedPart> used;
  for (const TimedPart &part : parts) {
    int64_t numRanks = 0;
    for (const TimedPart &other : parts)
      if (other.isOnMachineOf(part))
        numRanks += other.program->graph->mesh.getNumRanks();
    if (!part.machine.checkNumRanks(numRanks, getMeshPlace(*part.program->graph), diags))
      return {};
    TimedPart &timed = used.emplace_back(
        TimedPart{part.program, part.machine.usedBy(numRanks).withExchange(part.runtime), part.runtime});
    if (!timed.machine.isDeclared())
      continue;
    timed.kernels = Kernels::find(*part.program, part.runtime, diags);
    if (!timed.kernels)
      return {};
  }
  return used;
}

std::optional<Ticks> stage::findDurationBetween(const Task &task, const Machine &own, const Machine &other,
                                                llvm::StringRef &missing, const Machine *&lacking) {
  Ticks longer = 0;
  for (const Machine *machine : {&own, &other}) {
    std::optional<Ticks> ticks = findDuration(task, *machine, findFarthest(*machine), missing);
    if (!ticks) {
      lacking = machine;
      return std::nullopt;
    }
    longer = std::max(longer, *ticks);
  }
  return longer;
}

std::optional<StepActivity> stage::findStepTime(llvm::ArrayRef<TimedPart> asked, const TaskOptions &options,
                                                DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, options, diags);
  if (parts.empty())
    return std::nullopt;
  if (CompiledWalk::serves(parts)) {
    CompiledWalk walk(parts.front(), options, diags);
    if (CompiledWalk::Outcome outcome = walk.run(); outcome != CompiledWalk::Outcome::Unsupported)
      return outcome == CompiledWalk::Outcome::Done ? std::optional(walk.collect()) : std::nullopt;
  }
  return findStepTimeByTask(asked, options, diags);
}

std::optional<StepActivity> stage::findStepTimeByTask(llvm::ArrayRef<TimedPart> asked, const TaskOptions &askedOptions,
                                                      DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, askedOptions, diags);
  if (parts.empty())
    return std::nullopt;
  TaskOptions options = askedOptions;
  options.works = parts.front().machine.isDeclared();
  MachinePricer pricer(/*keepsRuns=*/false, diags);
  StepWalk walk(parts, options, pricer, diags);
  pricer.setWalk(walk);
  return walk.run() ? std::optional(walk.collect()) : std::nullopt;
}
