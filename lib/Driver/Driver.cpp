//===- Driver.cpp - stagec ------------------------------------------------===//
#include "stage/Driver/Driver.h"
#include "Commands.h"
#include "ProgressBar.h"
#include "ServedFile.h"
#include "stage/AstraSim/Configuration.h"
#include "stage/AstraSim/Diagnostics.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/text/Text.h"
#include "stage/Parse/Parse.h"
#include "stage/Report/Screen.h"
#include "stage/Support/Files.h"
#include "stage/Support/Process.h"
#include "stage/Support/StandardOutput.h"
#include "stage/Support/Table.h"
#include "stage/Time/PriceList.h"
#include "stage/Time/StepTime.h"
#include "stage/Time/TaskDurations.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

namespace {
/// Prints messages, and keeps of them what is said at the end of the run.
class MessagePrinter : public DiagnosticPrinter {
public:
  MessagePrinter() : DiagnosticPrinter(llvm::errs()) {}
  void handle(const Diagnostic &diagnostic, const llvm::SourceMgr &sources) override {
    if (holdsUnused && diagnostic.severity == Severity::Warning && diagnostic.code == "unused-value") {
      unused.push_back({diagnostic, &sources});
      return;
    }
    hasPrinted = true;
    if (diagnostic.severity == Severity::Error && firstError.empty())
      firstError = diagnostic.code.str();
    DiagnosticPrinter::handle(diagnostic, sources);
  }

  /// Warnings that a value is unused wait for the end of the phases that find errors: behind an error they say nothing,
  /// as the error may be the cause.
  void holdUnused() { holdsUnused = true; }
  void releaseUnused() {
    holdsUnused = false;
    for (const auto &[diagnostic, sources] : std::exchange(unused, {}))
      if (firstError.empty())
        handle(diagnostic, *sources);
  }

  bool hasPrinted = false;
  std::string firstError; ///< Its code.

private:
  bool holdsUnused = false;
  std::vector<std::pair<Diagnostic, const llvm::SourceMgr *>> unused;
};
} // namespace

static MessagePrinter &getPrinter() {
  static MessagePrinter printer;
  return printer;
}

DiagnosticConsumer *stage::driver::getMessagePrinter() { return &getPrinter(); }

void stage::driver::sayOk(const DriverOptions &options, unsigned numJobs, int64_t ranks) {
  bool isSilent = options.emit == EmitKind::None && options.report == ReportKind::None &&
                  options.traces.directory.empty() && options.passes.printAfter.empty() &&
                  !options.passes.printAfterAll && !options.passes.timePasses && !options.requests;
  if (isSilent && !getPrinter().hasPrinted)
    llvm::errs() << "ok: " << numJobs << (numJobs == 1 ? " job, " : " jobs, ") << formatCount(ranks)
                 << (ranks == 1 ? " rank\n" : " ranks\n");
}

TraceStatistics stage::driver::describe(const EmitStatistics &traces, bool written, unsigned steps) {
  return {written, traces.ranks, traces.classes, traces.nodes, traces.bytes, traces.files, steps};
}

static void printText(const Report &report, ReportKind kind) {
  if (kind == ReportKind::Full)
    print(llvm::outs(), report);
  else
    printScreen(llvm::outs(), report);
}

/// What a server did, then what the model takes.
static void printServed(ServedFile &served, const Report &report, ReportKind kind) {
  if (kind != ReportKind::Json) {
    served.print(llvm::outs());
    llvm::outs() << '\n';
    printText(report, kind);
    return;
  }
  std::string model;
  llvm::raw_string_ostream os(model);
  printJson(os, report);
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    served.printJson(json);
    json.attributeBegin("model");
    json.rawValue(llvm::StringRef(os.str()).trim());
    json.attributeEnd();
  });
  llvm::outs() << '\n';
}

std::optional<Machine> stage::driver::findMachine(const Compilation &c, const DriverOptions &options) {
  if (!c.job->machine)
    return options.machine;
  std::optional<MachineRates> rates = makeRates(*c.job->machine, c.job->precision.activation.name, c.diags);
  if (!rates)
    return std::nullopt;
  *rates = replaceRates(std::move(*rates), c.diags);
  return c.diags.hasErrors() ? std::nullopt : std::optional<Machine>(std::move(*rates));
}

std::optional<Machine> stage::driver::findAstraSimMachine(const Compilation &c, const DriverOptions &options) {
  if (c.job->machine)
    return findMachine(c, options);
  c.diags.report(c.job->decl->name.loc(), diag::AstraSimNeedsMachine).range(c.job->decl->name.range)
      << c.job->decl->name.name;
  return std::nullopt;
}

bool stage::driver::emitWithAstraSim(const Compilation &c, llvm::ArrayRef<const Program *> parts,
                                     const DriverOptions &options, const EmitOptions &traces,
                                     llvm::function_ref<bool()> emit) {
  if (options.astraSim.empty())
    return emit();
  std::optional<Machine> machine = findAstraSimMachine(c, options);
  if (!machine)
    return false;
  astrasim::Folder folder(options.astraSim, *machine, astrasim::findComputeTimes(/*carriesDurations=*/options.times),
                          c.job->decl->name.loc());
  return folder.prepare(parts, traces, c.diags) && emit() && folder.write(traces, c.diags);
}

bool stage::driver::printTime(llvm::ArrayRef<TimedPart> parts, const DriverOptions &options, DiagnosticEngine &diags) {
  std::optional<StepActivity> step = findStepTime(parts, options.traces, diags);
  if (step)
    print(llvm::outs(), std::move(*step), parts.front().machine, describeParts(parts));
  return step.has_value();
}

std::optional<TimedPart> stage::driver::findTimed(const Compilation &c, const Program &program, llvm::StringRef what,
                                                  const DriverOptions &options) {
  if (!c.job->machine && !what.empty()) {
    c.diags.report(c.job->decl->name.loc(), diag::TimesNeedMachine).range(c.job->decl->name.range)
        << what << c.job->decl->name.name;
    return std::nullopt;
  }
  std::optional<Machine> machine = findMachine(c, options);
  if (!machine)
    return std::nullopt;
  return TimedPart{&program, std::move(*machine), makeRuntime(c.job->runtime)};
}

bool stage::driver::printPrices(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags) {
  std::optional<std::vector<PriceRow>> prices = listPrices(parts, diags);
  if (prices)
    print(llvm::outs(), *prices, describeMachines(parts), describeRuntimes(parts));
  return prices.has_value();
}

static bool runBackEnd(Compilation &c, const DriverOptions &options, ServedFile *served) {
  auto findTimed = [&](llvm::StringRef what) { return driver::findTimed(c, *c.program, what, options); };
  if (options.emit == EmitKind::Time) {
    std::optional<TimedPart> part = findTimed("");
    return part && printTime(*part, options, c.diags);
  }
  if (options.emit == EmitKind::Prices) {
    std::optional<TimedPart> part = findTimed("--emit=prices");
    return part && printPrices(*part, c.diags);
  }
  if (options.emit == EmitKind::Timeline) {
    std::optional<TimedPart> part = findTimed("--emit=timeline");
    return part && printTimeline(c, *part, options);
  }
  if (options.emit == EmitKind::MemoryTimeline) {
    std::optional<TimedPart> part;
    if (c.job->machine && !(part = findTimed("--emit=memory-timeline")))
      return false;
    return printMemoryTimeline(c, std::move(part), options);
  }
  std::optional<Report> report;
  if (options.report != ReportKind::None || options.emit == EmitKind::Memory) {
    report = makeReport(c, /*withMoments=*/true);
    if (!report)
      return false;
    // A screen does not show what would make the step shorter.
    if (report->step && options.report != ReportKind::None &&
        !completeStepReport(c, *report->step, /*withSensitivities=*/options.report != ReportKind::Text))
      return false;
    if (options.emit == EmitKind::Memory)
      print(llvm::outs(), report->memory);
  }
  EmitOptions traces = options.traces;
  if (traces.tracker && !(traces.memory = findRuntimeMemory(c)))
    return false;
  if (!traces.directory.empty()) {
    ProgressBar bar(llvm::errs());
    if (llvm::errs().is_displayed())
      traces.progress = &bar;
    std::unique_ptr<TaskDurations> durations;
    if (options.times) {
      std::optional<TimedPart> part = findTimed("--times");
      if (!part || !(durations = TaskDurations::find(*part, options.traces, c.diags)))
        return false;
    }
    traces.durations = durations.get();
    std::optional<EmitStatistics> written;
    auto emit = [&] {
      written = emitTraces(*c.program, traces, c.diags);
      return written.has_value();
    };
    if (!emitWithAstraSim(c, {c.program.get()}, options, traces, emit))
      return false;
    if (report)
      report->traces = describe(*written, /*written=*/true, traces.steps);
  } else if (options.report != ReportKind::None) {
    if (std::optional<EmitStatistics> size = measureTraces(*c.program, traces, c.diags))
      report->traces = describe(*size, /*written=*/false, options.traces.steps);
    if (c.diags.hasErrors())
      return false;
  }
  if (served && options.report != ReportKind::None)
    printServed(*served, *report, options.report);
  else if (options.report == ReportKind::Text || options.report == ReportKind::Full)
    printText(*report, options.report);
  else if (options.report == ReportKind::Json)
    printJson(llvm::outs(), *report);
  return true;
}

/// `--emit=ast`: a file is shown also where its imports cannot be found.
static bool printTree(Session &session) {
  const SessionOptions &files = session.getOptions();
  auto buffer = readFile(files.input, session.getDiags());
  if (!buffer)
    return false;
  unsigned id = session.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
  ast::File *file = parseFile(session.getContext(), session.getDiags(), id, files.cache);
  if (file)
    ast::print(llvm::outs(), *file);
  return file != nullptr;
}

/// `--emit=job`. Which ranks split the batch may be known only once there is a graph.
static bool printJob(Compilation &c, const Plan &plan) {
  if (c.job->batchRanksAreGuessed ? !elaborate(c, plan) : !c.obligations.check(c.binding, c.diags))
    return false;
  sema::print(llvm::outs(), *c.job, c.sizes, c.binding);
  return true;
}

bool stage::driver::compile(Session &session, const DriverOptions &options, ServedFile *served) {
  if (options.emit == EmitKind::Ast)
    return printTree(session);
  Compilation c(session);
  getPrinter().holdUnused();
  auto release = llvm::make_scope_exit([] { getPrinter().releaseUnused(); });
  if (!session.load() || !bindPlan(c, options.plan))
    return false;
  if (options.emit == EmitKind::Job)
    return printJob(c, options.plan);
  if (!options.launcher.empty())
    return printArguments(c, options.launcher);
  if (!elaborate(c, options.plan))
    return false;
  getPrinter().releaseUnused();
  if (options.emit == EmitKind::Graph) {
    print(llvm::outs(), *c.graph);
    return true;
  }
  bool isPicture = options.emit == EmitKind::Schedule || options.emit == EmitKind::Mesh ||
                   options.emit == EmitKind::Layer || options.emit == EmitKind::Dot;
  if (c.job->inference && c.job->inference->prefilled && !isPicture)
    return compilePools(c, options);
  if (!runMiddle(c, options.passes))
    return false;
  if (options.emit == EmitKind::Program) {
    print(llvm::outs(), *c.program);
    return true;
  }
  if (options.emit == EmitKind::Schedule)
    return printSchedule(c, options);
  if (options.emit == EmitKind::Mesh)
    return printMesh(c, options);
  if (options.emit == EmitKind::Layer || options.emit == EmitKind::Dot)
    return printLayers(c, options);
  if (!runBackEnd(c, options, served))
    return false;
  if (options.remarks)
    printRemarkTotals(c, options);
  sayOk(options, 1, c.graph->mesh.getNumRanks());
  return true;
}

int stage::driver::stagecMain(int argc, char **argv) {
  prepareProcess(/*failureCode=*/1);
  llvm::SourceMgr noSources;
  DiagnosticEngine diags(noSources, getMessagePrinter());
  std::optional<DriverOptions> options = parseCommandLine(argc, argv, diags);
  if (!options)
    return 1;
  Session session(options->files, getMessagePrinter());
  session.getDiags().setShowRemarks(options->remarks);
  bool good = options->import           ? runImport(*options->import, diags)
              : options->doc            ? runDoc(*options->doc, diags)
              : options->search         ? runPlan(*options->search)
              : options->explain        ? runExplain(*options->explain, diags)
              : options->serve          ? runServe(*options->serve, diags)
              : options->prove          ? runProof(*options)
              : options->fits           ? runSearch(*options)
              : options->requests       ? runRequests(session, *options)
              : options->isComparison() ? runComparison(*options)
                                        : compile(session, *options);
  // Scripts that read messages need no advice.
  if (const std::string &code = getPrinter().firstError; !good && !code.empty() && llvm::errs().is_displayed())
    llvm::errs() << "'stagec --explain " << code << "' says more\n";
  return flushStandardOutput(diags) && good ? 0 : 1;
}
