//===- Pictures.cpp - what is drawn of a program --------------------------===//
//
// `--emit=schedule` and `--emit=mesh`: text on standard output, or SVG in the file of -o. `--emit=timeline`: SVG on
// standard output, or SVG or trace events in the file of -o. `--emit=memory-timeline`: SVG likewise, or a table or a
// snapshot.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Machine/TimeText.h"
#include "stage/Report/MemoryTimeline.h"
#include "stage/Report/MeshPicture.h"
#include "stage/Report/TimelinePicture.h"
#include "stage/Schedule/Picture.h"
#include "stage/Support/Files.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace stage;
using namespace stage::driver;

/// Per stage and position in its list.
using TimesOfUnits = std::vector<std::vector<int64_t>>;

/// What units take by the FLOPs of a rank of the stage: in ticks of a machine that does those of all stages in a
/// second.
static std::optional<TimesOfUnits> findTimesByFlops(Compilation &c) {
  std::optional<Report> report = makeReport(c);
  if (!report)
    return std::nullopt;
  const Environments &environments = c.graph->pipeline.environments;
  double all = 0;
  std::vector<std::vector<double>> flops(c.program->stages.size());
  for (auto [stage, costs, list] : llvm::zip(c.program->stages, report->stages, flops))
    for (const Unit &unit : stage.units)
      all += list.emplace_back(
          double(costs.unitCosts.at({unit.kind, unit.chunk, environments.getAlike(unit.environment)}).flops) /
          double(report->ranks / int64_t(c.program->stages.size())));
  Machine machine(MachineRates{.flops = uint64_t(std::clamp(all, 1.0, 1e19))});
  TimesOfUnits times;
  for (const std::vector<double> &list : flops) {
    times.emplace_back();
    for (double number : list) {
      llvm::StringRef missing; // no rate is
      times.back().push_back(*machine.ofCosts(number, 0, missing));
    }
  }
  return times;
}

/// Writes what `printSvg` prints into the file of -o, or else prints text. False after a report.
static bool printPicture(const DriverOptions &options, llvm::function_ref<void(llvm::raw_ostream &)> printText,
                         llvm::function_ref<void(llvm::raw_ostream &)> printSvg, DiagnosticEngine &diags) {
  if (options.picture.empty()) {
    printText(llvm::outs());
    return true;
  }
  auto write = [&](llvm::raw_ostream &os) {
    printSvg(os);
    return true;
  };
  return writeFile(options.picture, write, options.traces.force ? Existing::Replace : Existing::Keep, diags);
}

bool stage::driver::printSchedule(Compilation &c, const DriverOptions &options) {
  Schedule schedule = c.program->getSchedule(/*withStep=*/true);
  std::string title = "job " + c.job->decl->name.name.str();
  std::optional<TimesOfUnits> flops;
  if (!options.scheduleTimes && !(flops = findTimesByFlops(c)))
    return false;
  auto duration = [&](UnitRef ref) {
    return flops ? (*flops)[ref.stage][ref.position] : (*options.scheduleTimes)[unsigned(schedule.get(ref).kind)];
  };
  bool takesTime = false;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position)
      takesTime |= duration({stage, position}) > 0;
  if (!takesTime) {
    c.diags.report(c.job->decl->name.loc(), diag::ScheduleTakesNoTime);
    return false;
  }
  SchedulePicture picture(schedule, duration, title, flops ? "" : "units of time");
  return printPicture(
      options, [&](llvm::raw_ostream &os) { picture.printText(os); },
      [&](llvm::raw_ostream &os) { picture.printSvg(os); }, c.diags);
}

/// The calls of the job's strategy, one per line, each with the axes that its rules name.
static void printCalls(llvm::raw_ostream &os, const sema::BoundStrategy &strategy) {
  std::vector<sema::RulesOfCall> calls = sema::listCalls(strategy);
  if (llvm::all_of(calls, [](auto &of) { return !of.call->caller && !of.call->addition; }))
    return;
  os << "\ncalls of strategies, and the axes that their rules name\n";
  Table table({{"rules", Table::Right}, {"axes", Table::Left}, {"call", Table::Left}}, 2);
  for (const sema::RulesOfCall &of : calls)
    table.addRow({std::to_string(of.numRules), of.axes.empty() ? "none" : llvm::join(of.axes, ", "), of.call->str()});
  table.print(os);
}

bool stage::driver::printMesh(Compilation &c, const DriverOptions &options) {
  std::optional<Report> report = makeReport(c);
  if (!report)
    return false;
  MeshPicture picture(*report);
  return printPicture(
      options,
      [&](llvm::raw_ostream &os) {
        picture.printText(os);
        printCalls(os, c.job->strategy);
      },
      [&](llvm::raw_ostream &os) { picture.printSvg(os); }, c.diags);
}

/// The time of the step that is drawn. Nothing after a report.
static std::optional<TimelineWindow> findWindow(Compilation &c, const StepTimeline &timeline,
                                                const TimelineOptions &asked) {
  TimelineWindow window = {asked.from, std::min(asked.to.value_or(maxTicks), timeline.getStep())};
  const auto &name = c.job->decl->name;
  if (!timeline.getStep()) {
    c.diags.report(name.loc(), diag::ScheduleTakesNoTime).range(name.range);
    return std::nullopt;
  }
  if (window.from >= window.to) {
    c.diags.report(name.loc(), diag::WindowBehindStep).range(name.range)
        << asked.fromText << formatTime(timeline.getStep()) << timeline.getMachine();
    return std::nullopt;
  }
  return window;
}

bool stage::driver::printTimeline(Compilation &c, llvm::ArrayRef<TimedPart> parts, const DriverOptions &options) {
  std::unique_ptr<StepTimeline> timeline = StepTimeline::find(parts, c.diags);
  if (!timeline)
    return false;
  std::optional<TimelineWindow> window = findWindow(c, *timeline, options.timeline);
  if (!window)
    return false;
  std::string job = c.job->decl->name.name.str();
  auto print = [&](llvm::raw_ostream &os) {
    options.timeline.format == TimelineOptions::Format::Events
        ? printEvents(os, *timeline, job, *window)
        : printSvg(os, *timeline, job, *window, options.timeline.width);
  };
  return printPicture(options, print, print, c.diags);
}

bool stage::driver::printMemoryTimeline(Compilation &c, std::optional<TimedPart> part, const DriverOptions &options) {
  std::optional<Report> report = makeReport(c, /*withMoments=*/true);
  const RuntimeMemory *memory = report ? findRuntimeMemory(c) : nullptr;
  if (!memory)
    return false;
  const auto &name = c.job->decl->name;
  const Runtime runtime = makeRuntime(c.job->runtime);
  if (options.timeline.format == TimelineOptions::Format::Snapshot && !runtime.allocator) {
    c.diags.report(name.loc(), diag::SnapshotNeedsAllocator).range(name.range) << runtime.describe();
    return false;
  }
  std::unique_ptr<StepTimeline> step;
  if (part && !(step = StepTimeline::find(*part, c.diags)))
    return false;
  TimelineWindow window = {0, 0};
  if (step) {
    std::optional<TimelineWindow> found = findWindow(c, *step, options.timeline);
    if (!found)
      return false;
    window = *found;
  } else if (options.timeline.from || options.timeline.to) {
    c.diags.report(name.loc(), diag::TimesNeedMachine).range(name.range) << "a window (--from, --to)" << name.name;
    return false;
  } else {
    for (const StageProgram &stage : c.program->stages)
      window.to = std::max(window.to, Ticks(countNodes(*c.program, stage)));
    if (!window.to) {
      c.diags.report(name.loc(), diag::ScheduleTakesNoTime).range(name.range);
      return false;
    }
  }
  const MemoryTimeline timeline = {
      name.name.str(), &report->memory, memory, &runtime, c.job->machine ? int64_t(divideCapacity(*c.job).first) : 0,
      step.get(),      window};
  auto print = [&](llvm::raw_ostream &os) {
    switch (options.timeline.format) {
    case TimelineOptions::Format::Table:
      return printCsv(os, timeline, c.diags);
    case TimelineOptions::Format::Snapshot:
      return printSnapshot(os, timeline, c.diags);
    default:
      return printSvg(os, timeline, options.timeline.width, c.diags);
    }
  };
  return printPicture(options, print, print, c.diags);
}
