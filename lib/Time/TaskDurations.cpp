//===- TaskDurations.cpp - what each task takes, for traces ---------------===//
#include "stage/Time/TaskDurations.h"
#include "MachinePricer.h"
#include "stage/Time/StepTime.h"

using namespace stage;

std::unique_ptr<TaskDurations> TaskDurations::find(llvm::ArrayRef<const Program *> programs, const Machine &machine,
                                                   const Runtime &runtime, const TaskOptions &asked,
                                                   DiagnosticEngine &diags) {
  if (!checkTimed(programs, machine, asked, diags))
    return nullptr;
  TaskOptions options = asked;
  options.works = machine.isDeclared();
  MachinePricer pricer(programs, machine, runtime, /*keepsRuns=*/true, diags);
  StepWalk walk(programs, machine, options, pricer, diags);
  pricer.setWalk(walk);
  if (!walk.run())
    return nullptr;
  auto result = std::make_unique<TaskDurations>();
  result->machine = machine.describe();
  result->runtime = runtime;
  unsigned firstClass = 0;
  for (const Program *program : programs) {
    auto classes = std::make_unique<RankClasses>(*program, machine.getBlockSizes(), /*apart=*/programs.size() > 1);
    unsigned count = classes->getNumClasses();
    for (unsigned number = 0; number < count; ++number)
      result->origins.push_back({program, classes->describe(number)});
    result->parts.push_back({int64_t(program->firstRank), firstClass, std::move(classes)});
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

unsigned TaskDurations::findClass(int64_t rank) const {
  for (const Part &part : llvm::reverse(parts))
    if (rank >= part.firstRank)
      return part.firstClass + part.classes->find(rank - part.firstRank);
  llvm_unreachable("ranks are counted from 0");
}
