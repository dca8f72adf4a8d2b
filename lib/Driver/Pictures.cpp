//===- Pictures.cpp - what is drawn of a program --------------------------===//
//
// `--emit=schedule` and `--emit=mesh`: text on standard output, or SVG in the file of -o. `--emit=timeline`: SVG on
// standard output, or SVG or trace events in the file of -o. `--emit=memory-timeline`: SVG likewise, or a table or a
// snapshot.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ConvertPicture.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/text/LayerDot.h"
#include "stage/IR/text/Text.h"
#include "stage/Machine/TimeText.h"
#include "stage/Report/LayerPicture.h"
#include "stage/Report/MemoryTimeline.h"
#include "stage/Report/MeshPicture.h"
#include "stage/Report/SchedulePicture.h"
#include "stage/Report/TimelinePicture.h"
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
  const PictureOptions &picture = options.picture;
  if (picture.file.empty()) {
    printText(llvm::outs());
    return true;
  }
  Existing existing = options.traces.force ? Existing::Replace : Existing::Keep;
  if (picture.format == PictureOptions::Format::Pdf) {
    std::string svg;
    llvm::raw_string_ostream os(svg);
    printSvg(os);
    std::optional<std::string> pdf = convertToPdf(os.str(), diags);
    return pdf && writeFile(picture.file, *pdf, existing, diags);
  }
  auto write = [&](llvm::raw_ostream &os) {
    printSvg(os);
    return true;
  };
  return writeFile(picture.file, write, existing, diags);
}

bool stage::driver::writePicture(const DriverOptions &options, llvm::function_ref<void(llvm::raw_ostream &)> printSvg,
                                 DiagnosticEngine &diags) {
  return printPicture(options, printSvg, printSvg, diags);
}

/// `pp 4 x tp 8`: the axes that have several ranks.
static std::string describeAxes(const Mesh &mesh) {
  std::string text;
  for (const Axis &axis : mesh.getAxes())
    if (axis.size > 1)
      text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  return text;
}

/// `--title`, or what is drawn: `job pretrain (B = 128), pp 4 x tp 8`.
static PictureFrame makeFrame(const Compilation &c, const DriverOptions &options) {
  if (!options.picture.title.empty())
    return {options.picture.title, options.picture.width};
  std::string title = "job " + c.job->decl->name.name.str(), values;
  for (const sema::Override &value : options.plan.values)
    values += (values.empty() ? "" : ", ") + value.name + " = " + value.value.getSpelling();
  if (!values.empty())
    title += " (" + values + ")";
  if (std::string axes = describeAxes(c.graph->mesh); !axes.empty())
    title += ", " + axes;
  return {title, options.picture.width};
}

/// The time of a schedule that is drawn. Nothing after a report.
static std::optional<TimelineWindow> findWindow(Compilation &c, int64_t makespan, const PictureOptions &asked) {
  auto find = [&](const std::optional<PictureTime> &time, int64_t standard) {
    return !time ? standard : time->isPercent ? int64_t(__int128(makespan) * time->value / 100) : time->value;
  };
  TimelineWindow window = {find(asked.from, 0), std::min(find(asked.to, makespan), makespan)};
  if (window.from < window.to)
    return window;
  const auto &name = c.job->decl->name;
  if (window.from < makespan)
    c.diags.report(name.loc(), diag::EmptyWindow).range(name.range)
        << asked.to->text << (asked.from ? asked.from->text : "0");
  else
    c.diags.report(name.loc(), diag::WindowBehindSchedule).range(name.range) << asked.from->text << makespan;
  return std::nullopt;
}

bool stage::driver::printSchedule(Compilation &c, const DriverOptions &options) {
  Schedule schedule = c.program->getSchedule(/*withStep=*/true);
  std::optional<TimesOfUnits> flops;
  if (!options.picture.scheduleTimes && !(flops = findTimesByFlops(c)))
    return false;
  auto duration = [&](UnitRef ref) {
    return flops ? (*flops)[ref.stage][ref.position]
                 : (*options.picture.scheduleTimes)[unsigned(schedule.get(ref).kind)];
  };
  bool takesTime = false;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position)
      takesTime |= duration({stage, position}) > 0;
  if (!takesTime) {
    c.diags.report(c.job->decl->name.loc(), diag::ScheduleTakesNoTime);
    return false;
  }
  SchedulePicture picture(schedule, duration, "job " + c.job->decl->name.name.str(), flops ? "" : "units of time");
  std::optional<TimelineWindow> window = findWindow(c, picture.getMakespan(), options.picture);
  if (!window)
    return false;
  return printPicture(
      options, [&](llvm::raw_ostream &os) { picture.printText(os, *window); },
      [&](llvm::raw_ostream &os) { picture.printSvg(os, *window, makeFrame(c, options)); }, c.diags);
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
  std::vector<MeshLevel> levels;
  if (c.job->machine) {
    std::optional<Machine> machine = findMachine(c, options);
    if (!machine || !machine->checkNumRanks(report->ranks, c.job->decl->name.loc(), c.diags))
      return false;
    Machine used = machine->usedBy(report->ranks);
    for (const MachineLevel &level : used.getLevels())
      levels.push_back({level.name, level.ranks});
  }
  MeshPicture picture(*report, std::move(levels));
  return printPicture(
      options,
      [&](llvm::raw_ostream &os) {
        picture.printText(os);
        printCalls(os, c.job->strategy);
      },
      [&](llvm::raw_ostream &os) { picture.printSvg(os, makeFrame(c, options)); }, c.diags);
}

/// The layer that is asked for, or else the first. Nothing after a report.
static std::optional<LayerOps> findAskedLayer(Compilation &c, const PictureOptions &asked) {
  std::vector<std::string> known = listLayers(*c.graph);
  const auto &name = c.job->decl->name;
  if (known.empty()) {
    c.diags.report(name.loc(), diag::NoLayers).range(name.range);
    return std::nullopt;
  }
  const std::string &path = asked.layer.empty() ? known.front() : asked.layer;
  if (std::optional<LayerOps> layer = findLayer(*c.graph, path))
    return layer;
  constexpr size_t maxShown = 6;
  std::string others;
  for (const std::string &other : llvm::ArrayRef(known).drop_front().take_front(maxShown))
    others += ", or " + other;
  c.diags.report(name.loc(), diag::UnknownLayer).range(name.range) << path << known.front() << others;
  return std::nullopt;
}

bool stage::driver::printLayers(Compilation &c, const DriverOptions &options) {
  if (options.emit == EmitKind::Dot && options.picture.layer.empty()) {
    printDot(llvm::outs(), *c.graph);
    return true;
  }
  std::optional<LayerOps> layer = findAskedLayer(c, options.picture);
  if (!layer)
    return false;
  if (options.emit == EmitKind::Dot) {
    printDot(llvm::outs(), *c.graph, *layer);
    return true;
  }
  auto print = [&](llvm::raw_ostream &os) { printLayer(os, *c.graph, *layer, makeFrame(c, options)); };
  return writePicture(options, print, c.diags);
}

/// The time of the step that is drawn. Nothing after a report.
static std::optional<TimelineWindow> findWindow(Compilation &c, const StepTimeline &timeline,
                                                const PictureOptions &asked) {
  TimelineWindow window = {asked.from ? asked.from->value : 0,
                           std::min(asked.to ? asked.to->value : maxTicks, timeline.getStep())};
  const auto &name = c.job->decl->name;
  if (!timeline.getStep()) {
    c.diags.report(name.loc(), diag::ScheduleTakesNoTime).range(name.range);
    return std::nullopt;
  }
  if (window.from >= window.to) {
    c.diags.report(name.loc(), diag::WindowBehindStep).range(name.range)
        << asked.from->text << formatTime(timeline.getStep()) << timeline.getMachine();
    return std::nullopt;
  }
  return window;
}

bool stage::driver::printTimeline(Compilation &c, llvm::ArrayRef<TimedPart> parts, const DriverOptions &options) {
  std::unique_ptr<StepTimeline> timeline = StepTimeline::find(parts, c.diags);
  if (!timeline)
    return false;
  std::optional<TimelineWindow> window = findWindow(c, *timeline, options.picture);
  if (!window)
    return false;
  std::string job = c.job->decl->name.name.str();
  auto print = [&](llvm::raw_ostream &os) {
    options.picture.format == PictureOptions::Format::Events ? printEvents(os, *timeline, job, *window)
                                                             : printSvg(os, *timeline, *window, makeFrame(c, options));
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
  if (options.picture.format == PictureOptions::Format::Snapshot && !runtime.allocator) {
    c.diags.report(name.loc(), diag::SnapshotNeedsAllocator).range(name.range) << runtime.describe();
    return false;
  }
  std::unique_ptr<StepTimeline> step;
  if (part && !(step = StepTimeline::find(*part, c.diags)))
    return false;
  TimelineWindow window = {0, 0};
  if (step) {
    std::optional<TimelineWindow> found = findWindow(c, *step, options.picture);
    if (!found)
      return false;
    window = *found;
  } else if (options.picture.from || options.picture.to) {
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
  const MemoryTimeline timeline = {&report->memory, memory,
                                   &runtime,        c.job->machine ? int64_t(divideCapacity(*c.job).first) : 0,
                                   step.get(),      window};
  auto print = [&](llvm::raw_ostream &os) {
    switch (options.picture.format) {
    case PictureOptions::Format::Table:
      return printCsv(os, timeline, c.diags);
    case PictureOptions::Format::Snapshot:
      return printSnapshot(os, timeline, c.diags);
    default:
      return printSvg(os, timeline, makeFrame(c, options), c.diags);
    }
  };
  return printPicture(options, print, print, c.diags);
}
