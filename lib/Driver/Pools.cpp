//===- Pools.cpp - what is printed and written of two pools ---------------===//
//
// A job and the one that prefills its caches are compiled and linked (stage/Compiler/Compilation.h). Reports are of
// each; their traces are written into one folder, the ranks of the prefill first.
//
// Limits: both jobs name one machine and one runtime, whose entries are those of the job that decodes. `-D` and
// `--print-after` are of the job that decodes.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ProgressBar.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Report/SentCaches.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

/// False after a report that the two pools are on two machines, or have two runtimes.
static bool checkMachines(const Compilation &c, const Compilation &prefill) {
  auto compare = [&](const auto &own, const auto &other, auto message, const std::string &none) {
    std::string name = own ? own->name : none, otherName = other ? other->name : none;
    if (name == otherName)
      return true;
    c.diags.report(c.job->decl->name.loc(), message).range(c.job->decl->name.range)
        << c.job->decl->name.name << name << otherName;
    return false;
  };
  return compare(c.job->machine, prefill.job->machine, diag::PoolsOnMachines, "no machine") &&
         compare(c.job->runtime, prefill.job->runtime, diag::PoolsWithRuntimes, "ideal");
}

bool stage::driver::compilePools(Compilation &c, const DriverOptions &options) {
  if (options.traces.tracker && refusePools(c, "lists of tensors (--tracker) in the traces"))
    return false;
  if (options.traces.steps > 1 && refusePools(c, "several steps (--steps)"))
    return false;
  Compilation prefill(c.session, c.diags);
  if (!runFrontEndOfPrefill(prefill, c, getPlanOfPrefill(c, options.plan)) || !runMiddle(prefill) ||
      !runMiddle(c, options.passes))
    return false;
  std::optional<Machine> machine;
  if (options.emit == EmitKind::Time && (!checkMachines(c, prefill) || !(machine = findMachine(c, options))))
    return false;
  if (!options.astraSim.empty() && !checkMachines(c, prefill))
    return false;
  std::vector<Report> reports;
  // On one machine the pools lie side by side; on two, each begins with the first node of its own.
  if (c.job->machine && prefill.job->machine && c.job->machine->name == prefill.job->machine->name) {
    c.program->firstRank = prefill.graph->mesh.getNumRanks();
    c.ranksOfPools = prefill.ranksOfPools = c.program->firstRank + c.graph->mesh.getNumRanks();
  }
  for (Compilation *pool : {&prefill, &c})
    if (std::optional<Report> report = makeReport(*pool);
        report && (!report->step || options.report == ReportKind::None || completeStepReport(*pool, *report->step)))
      reports.push_back(std::move(*report));
    else
      return false;
  if (options.emit == EmitKind::Memory)
    for (const Report &report : reports) {
      llvm::outs() << report.job << ":\n";
      print(llvm::outs(), report.memory);
    }
  std::unique_ptr<LinkedProgram> linked = linkPools(prefill, c);
  if (!linked)
    return false;
  if (options.emit == EmitKind::Program) {
    for (auto [part, report] : llvm::zip(linked->parts, reports)) {
      llvm::outs() << (part == linked->parts.front() ? "" : "\n") << report.job << ": ";
      print(llvm::outs(), *part);
    }
    return true;
  }
  llvm::SmallVector<const Program *, 2> parts;
  for (const auto &part : linked->parts)
    parts.push_back(part.get());
  if (options.emit == EmitKind::Time)
    return printTime(parts, *machine, makeRuntime(c.job->runtime), options, c.diags);
  if (options.emit == EmitKind::Prices)
    return checkMachines(c, prefill) && printPrices(c, parts, options);
  if (options.emit == EmitKind::Timeline)
    return checkMachines(c, prefill) && printTimeline(c, parts, options);
  SentCaches sent = countSentCaches(*linked, c.job->globalBatch);
  sent.from = reports.front().job;
  sent.to = reports.back().job;
  if (!options.traces.directory.empty()) {
    ProgressBar bar(llvm::errs());
    EmitOptions traces = options.traces;
    if (llvm::errs().is_displayed())
      traces.progress = &bar;
    std::unique_ptr<TaskDurations> durations;
    if (options.times && (!checkMachines(c, prefill) || !(durations = findDurations(c, parts, options))))
      return false;
    traces.durations = durations.get();
    std::optional<EmitStatistics> written;
    auto emit = [&] {
      written = emitTraces(*linked, traces, c.diags);
      return written.has_value();
    };
    if (!emitWithAstraSim(c, parts, options, emit))
      return false;
    sent.traces = describe(*written, /*written=*/true, traces.steps);
  }
  if (options.report == ReportKind::Text)
    print(llvm::outs(), reports, sent);
  else if (options.report == ReportKind::Json)
    printJson(llvm::outs(), reports, sent);
  return true;
}
