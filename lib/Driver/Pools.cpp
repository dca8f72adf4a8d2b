//===- Pools.cpp - what is printed and written of two pools ---------------===//
//
// A job and the one that prefills its caches are compiled and linked (stage/Compiler/Compilation.h). Reports are of
// each; their traces are written into one folder, the ranks of the prefill first.
//
// Each pool is timed on the machine of its own job, with the runtime of its own job (stage/Time/TimedPart.h).
//
// Limits: `-D` and `--print-after` are of the job that decodes. ASTRA-sim knows one network, and so one machine.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ProgressBar.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Report/Screen.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

static std::string describeMachine(const std::optional<sema::BoundMachine> &machine) {
  if (!machine)
    return "no machine";
  return machine->name + (machine->changes.empty() ? "" : " with " + llvm::join(machine->changes, ", "));
}

/// False after a report that ASTRA-sim is asked for, and the pools are on two machines.
static bool checkAstraSim(const Compilation &c, const Compilation &prefill, const DriverOptions &options) {
  std::string own = describeMachine(c.job->machine), other = describeMachine(prefill.job->machine);
  if (options.astraSim.empty() || own == other)
    return true;
  c.diags.report(c.job->decl->name.loc(), diag::PoolsOnMachines).range(c.job->decl->name.range)
      << c.job->decl->name.name << own << other;
  return false;
}

/// What needs a machine that a job names, as a user writes it; nothing if nobody asks for times.
static std::optional<llvm::StringRef> findAskerOfTimes(const Compilation &c, const Compilation &prefill,
                                                       const DriverOptions &options) {
  if (options.emit == EmitKind::Time)
    return c.job->machine || prefill.job->machine ? "--emit=time" : ""; // rates are those of both
  if (options.emit == EmitKind::Prices)
    return "--emit=prices";
  if (options.emit == EmitKind::Timeline)
    return "--emit=timeline";
  if (options.times && !options.traces.directory.empty())
    return "--times";
  return std::nullopt;
}

bool stage::driver::compilePools(Compilation &c, const DriverOptions &options) {
  if (options.traces.tracker && refusePools(c, "lists of tensors (--tracker) in the traces"))
    return false;
  if (options.emit == EmitKind::MemoryTimeline && refusePools(c, "memory over a step (--emit=memory-timeline)"))
    return false;
  if (options.traces.steps > 1 && refusePools(c, "several steps (--steps)"))
    return false;
  Compilation prefill(c.session, c.diags);
  if (!runFrontEndOfPrefill(prefill, c, getPlanOfPrefill(c, options.plan)) || !runMiddle(prefill) ||
      !runMiddle(c, options.passes))
    return false;
  if (!checkAstraSim(c, prefill, options))
    return false;
  int64_t firstRank = prefill.graph->mesh.getNumRanks();
  bool isElsewhere = describeMachine(c.job->machine) != describeMachine(prefill.job->machine);
  c.program->firstRank = isElsewhere ? 0 : firstRank; // its report is that of a job that fills its machine alone
  std::vector<TimedPart> timed;
  if (std::optional<llvm::StringRef> what = findAskerOfTimes(c, prefill, options)) {
    for (const Compilation *pool : {&prefill, &c})
      if (std::optional<TimedPart> part = findTimed(*pool, *pool->program, *what, options))
        timed.push_back(std::move(*part));
      else
        return false;
  }
  std::vector<Report> reports;
  if (!isElsewhere) // the pools lie side by side
    c.ranksOfPools = prefill.ranksOfPools = firstRank + c.graph->mesh.getNumRanks();
  for (Compilation *pool : {&prefill, &c})
    if (std::optional<Report> report = makeReport(*pool);
        report && (!report->step || options.report == ReportKind::None || completeStepReport(*pool, *report->step)))
      reports.push_back(std::move(*report));
    else
      return false;
  c.program->firstRank = firstRank;
  if (isElsewhere && reports.back().step)
    for (StageTime &stage : reports.back().step->time.stages)
      stage.rank += firstRank;
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
  for (auto [part, program] : llvm::zip(timed, parts))
    part.program = program;
  if (options.emit == EmitKind::Time)
    return printTime(timed, options, c.diags);
  if (options.emit == EmitKind::Prices)
    return printPrices(timed, c.diags);
  if (options.emit == EmitKind::Timeline)
    return printTimeline(c, timed, options);
  SentCaches sent = countSentCaches(*linked, c.job->globalBatch);
  sent.from = reports.front().job;
  sent.to = reports.back().job;
  if (!options.traces.directory.empty()) {
    ProgressBar bar(llvm::errs());
    EmitOptions traces = options.traces;
    if (llvm::errs().is_displayed())
      traces.progress = &bar;
    std::unique_ptr<TaskDurations> durations;
    if (options.times && !(durations = TaskDurations::find(timed, options.traces, c.diags)))
      return false;
    traces.durations = durations.get();
    std::optional<EmitStatistics> written;
    auto emit = [&] {
      written = emitTraces(*linked, traces, c.diags);
      return written.has_value();
    };
    if (!emitWithAstraSim(c, parts, options, traces, emit))
      return false;
    sent.traces = describe(*written, /*written=*/true, traces.steps);
  }
  if (options.report == ReportKind::Text)
    printScreen(llvm::outs(), reports, sent);
  else if (options.report == ReportKind::Full)
    print(llvm::outs(), reports, sent);
  else if (options.report == ReportKind::Json)
    printJson(llvm::outs(), reports, sent);
  sayOk(options, 2, firstRank + c.graph->mesh.getNumRanks());
  return true;
}
