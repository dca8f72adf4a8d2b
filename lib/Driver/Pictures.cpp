//===- Pictures.cpp - what is drawn of a program --------------------------===//
//
// `--emit=schedule` and `--emit=mesh`: text on standard output, or SVG in the file of -o.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Report/MeshPicture.h"
#include "stage/Schedule/Picture.h"
#include "stage/Support/Files.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace stage;
using namespace stage::driver;

/// Per stage and position in its list.
using TimesOfUnits = std::vector<std::vector<int64_t>>;

/// What units take by the FLOPs of their templates: of a stage's ranks together, made small enough to be added up.
static std::optional<TimesOfUnits> findUnitFlops(Compilation &c) {
  std::optional<Report> report = makeReport(c);
  if (!report)
    return std::nullopt;
  const Environments &environments = c.graph->pipeline.environments;
  __int128 total = 0;
  std::vector<std::vector<__int128>> flops(c.program->stages.size());
  for (auto [stage, costs, list] : llvm::zip(c.program->stages, report->stages, flops))
    for (const Unit &unit : stage.units)
      total +=
          list.emplace_back(costs.unitCosts.at({unit.kind, unit.chunk, environments.getAlike(unit.environment)}).flops);
  unsigned shift = 0;
  while (total >> shift > __int128(1) << 60)
    ++shift;
  TimesOfUnits times;
  for (const std::vector<__int128> &list : flops) {
    times.emplace_back();
    for (__int128 number : list)
      times.back().push_back(int64_t(number >> shift));
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
  if (!options.scheduleTimes && !(flops = findUnitFlops(c)))
    return false;
  auto duration = [&](UnitRef ref) {
    return flops ? (*flops)[ref.stage][ref.position] : options.scheduleTimes->of(schedule.get(ref).kind);
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

bool stage::driver::printMesh(Compilation &c, const DriverOptions &options) {
  std::optional<Report> report = makeReport(c);
  if (!report)
    return false;
  MeshPicture picture(*report);
  return printPicture(
      options, [&](llvm::raw_ostream &os) { picture.printText(os); },
      [&](llvm::raw_ostream &os) { picture.printSvg(os); }, c.diags);
}
