//===- TaskDurations.cpp - what each task takes, for traces ---------------===//
#include "stage/Time/TaskDurations.h"
#include "MachinePricer.h"
#include "stage/Time/StepTime.h"

using namespace stage;

std::unique_ptr<TaskDurations> TaskDurations::find(llvm::ArrayRef<TimedPart> asked, const TaskOptions &askedOptions,
                                                   DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, askedOptions, diags);
  if (parts.empty())
    return nullptr;
  TaskOptions options = askedOptions;
  options.works = parts.front().machine.isDeclared();
  MachinePricer pricer(/*keepsRuns=*/true, diags);
  StepWalk walk(parts, options, pricer, diags);
  pricer.setWalk(walk);
  if (!walk.run())
    return nullptr;
  auto result = std::make_unique<TaskDurations>();
  unsigned firstClass = 0;
  for (const TimedPart &part : parts) {
    const Machine &machine = part.machine;
    auto classes = std::make_unique<RankClasses>(*part.program, machine.getBlockSizes(), /*apart=*/parts.size() > 1);
    unsigned count = classes->getNumClasses();
    for (unsigned number = 0; number < count; ++number)
      result->origins.push_back({part.program, classes->describe(number)});
    result->parts.push_back(
        {machine.describe(), part.runtime, part.program->firstRank, firstClass, std::move(classes)});
    firstClass += count;
  }
  constexpr Ticks ticksPerMicro = ticksPerSecond / 1'000'000;
  for (unsigned number = 0; number < pricer.getNumClasses(); ++number) {
    std::vector<Duration> &durations = result->classes.emplace_back();
    std::vector<Ticks> rests;
    for (auto [task, run] : llvm::zip(pricer.getTasks(number), pricer.getRuns(number))) {
      Duration &duration = durations.emplace_back(Duration{task.alone, 0, task.unit, task.level});
      if (task.kind == TaskKind::Receive)
        continue;
      duration.charged = run.end - run.begin;
      if (rests.size() <= task.lane)
        rests.resize(task.lane + 1);
      Ticks &rest = rests[task.lane];
      rest += duration.charged;
      duration.micros = uint64_t(rest / ticksPerMicro);
      rest %= ticksPerMicro;
    }
  }
  return result;
}

const TaskDurations::Part &TaskDurations::findPart(int64_t rank) const {
  for (const Part &part : llvm::reverse(parts))
    if (rank >= part.firstRank)
      return part;
  llvm_unreachable("ranks are counted from 0");
}

unsigned TaskDurations::findClass(int64_t rank) const {
  const Part &part = findPart(rank);
  return part.firstClass + part.classes->find(rank - part.firstRank);
}
