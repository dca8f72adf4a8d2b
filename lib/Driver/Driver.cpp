//===- Driver.cpp - the phases of the compiler in order -------------------===//
#include "stage/Driver/Driver.h"
#include "Compilation.h"
#include "ProgressBar.h"
#include "ServedFile.h"
#include "stage/AST/AST.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Parse/Parse.h"
#include "stage/Report/Report.h"
#include "stage/Sema/Job.h"
#include "stage/Support/Files.h"
#include "stage/Support/Process.h"
#include "stage/Support/StandardOutput.h"
#include "stage/Time/StepTime.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "stage/Transforms/training/LossScale.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

bool stage::driver::loadFiles(SourceFiles &input, const DriverOptions &options) {
  if (input.files)
    return true;
  auto files = std::make_unique<sema::Program>(input.ast, input.diags, getProgramOptions(options));
  // Every name is known before anything is evaluated.
  if (!files->load(options.input) || input.diags.hasErrors() || !sema::checkNames(*files))
    return false;
  input.files = std::move(files);
  return true;
}

/// A job that serves requests has some, and no other job has.
static bool bindRequests(Compilation &c, const DriverOptions &options) {
  bool serves = c.job->inference && c.job->inference->servesRequests;
  if (serves && options.prove) {
    int64_t numRanks = c.job->strategy.getNumRanks() / c.job->strategy.getNumStages();
    sema::serveRequests(*c.job, makeUnitsToProve(std::max<int64_t>(numRanks, 2)), c.binding);
    return true;
  }
  if (serves != bool(options.served)) {
    c.diags.report(c.job->stepRange.Start, serves ? diag::RequestsMissing : diag::StepServesNone)
        .range(c.job->stepRange);
    return false;
  }
  if (serves)
    sema::serveRequests(*c.job, options.served, c.binding);
  return true;
}

static bool bindJob(Compilation &c, const DriverOptions &options, std::optional<int64_t> batchRanks) {
  c.binding = SizeBinding();
  c.obligations = Obligations();
  c.job = sema::bindJob(*c.files, options.job, options.defines, c.sizes, c.binding, c.obligations, c.diags,
                        options.namesConstants, batchRanks);
  if (c.job)
    c.job->constantUnit = options.constantUnit;
  if (c.job && c.job->inference && options.sequenceLength)
    sema::shortenInference(*c.job, options.sequenceLength, c.binding);
  if (c.job && c.job->inference && options.positions)
    sema::setSequenceLength(*c.job, options.positions, c.binding);
  if (c.job && !bindRequests(c, options))
    return false;
  if (c.job && options.allEquallyFast)
    llvm::erase_if(c.job->strategy.rules,
                   [](const sema::BoundRule &rule) { return llvm::isa<ast::SlowStmt>(rule.stmt); });
  return c.job.has_value();
}

static bool elaborate(Compilation &c) {
  c.graph = generateGraph(*c.files, *c.job, c.sizes, c.binding, c.obligations, c.diags, c.models);
  return c.graph != nullptr && !c.diags.hasErrors();
}

/// Sees that a microbatch is for the ranks among which the inputs are split.
static bool settleBatch(Compilation &c, const DriverOptions &options) {
  if (c.job->batchDim.empty())
    return true;
  int64_t assumed = c.job->batchRanks, found = countRanksThatSplitInputs(*c.graph, c.job->batchDim, c.diags);
  if (found == assumed)
    return true;
  if (!bindJob(c, options, found) || !elaborate(c))
    return false;
  if (int64_t again = countRanksThatSplitInputs(*c.graph, c.job->batchDim, c.diags); again != found) {
    c.diags.report(c.job->stepRange.Start, diag::BatchUnsettled).range(c.job->stepRange) << again << found;
    return false;
  }
  return true;
}

bool stage::driver::runFrontEnd(Compilation &c, const DriverOptions &options) {
  c.diags.setLibrary(options.stdlibDir);
  if (options.emit == EmitKind::Ast) {
    // A file is shown also where its imports cannot be found.
    auto buffer = readFile(options.input, c.diags);
    if (!buffer)
      return false;
    unsigned bufferId = c.sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
    ast::File *file = parseFile(c.ast, c.diags, bufferId, options.cache);
    if (file)
      ast::print(llvm::outs(), *file);
    return file != nullptr;
  }
  if (!loadFiles(c.input, options))
    return false;
  // From here on every symbol has a value.
  if (!bindJob(c, options, std::nullopt))
    return false;
  // What the library says from here on is said of the user's job, unless a call is nearer.
  c.diags.setUserPlace(c.job->decl->name.loc());
  if (options.emit == EmitKind::Job && !c.job->batchRanksAreGuessed) {
    if (!c.obligations.check(c.binding, c.diags))
      return false;
    sema::print(llvm::outs(), *c.job, c.sizes, c.binding);
    return true;
  }
  // From here on nothing knows the syntax tree, unless a microbatch turns out to be for other ranks.
  if (!elaborate(c) || !settleBatch(c, options))
    return false;
  if (c.job->inference && c.job->inference->isPacked() && c.job->batchRanks > 1) {
    c.diags.report(c.job->stepRange.Start, options.served ? diag::RequestsOfRanks : diag::LengthsOfRanks)
            .range(c.job->stepRange)
        << c.job->batchRanks;
    return false;
  }
  if (options.emit == EmitKind::Job)
    sema::print(llvm::outs(), *c.job, c.sizes, c.binding);
  if (!c.job->batchDim.empty())
    checkLossScale(*c.graph, c.job->batchDim, c.diags);
  return true;
}

bool stage::driver::runMiddle(Compilation &c, const DriverOptions &options) {
  PassManager manager(getAllPasses(), c.diags, options.passes, llvm::errs());
  // The model may come with its backward, made for the microbatches of another plan.
  bool hasBackward = c.graph->findPhase(PhaseKind::Backward) != nullptr;
  if (hasBackward)
    setGradientSeed(*c.graph);
  for (const PassInfo &pass : getAllPasses())
    if (pass.run != differentiate || !hasBackward)
      manager.addPass(pass);
  if (!manager.run(*c.graph) || c.diags.hasErrors()) {
    noteRuleConditions(c);
    return false;
  }
  // No op is made beyond this point.
  c.program = buildProgram(*c.graph, c.diags);
  return c.program != nullptr;
}

TraceStatistics stage::driver::describe(const EmitStatistics &traces, bool written, unsigned steps) {
  return {written, traces.ranks, traces.classes, traces.nodes, traces.bytes, traces.files, steps};
}

std::optional<Report> stage::driver::makeReport(Compilation &c) {
  MemoryReport memory = accountMemory(*c.program, c.diags);
  if (c.diags.hasErrors())
    return std::nullopt;
  Report report = makeReport(*c.program, std::move(memory), c.diags);
  if (c.diags.hasErrors())
    return std::nullopt;
  report.job = c.job->decl->name.name.str();
  return report;
}

/// What a server did, then what the model takes.
static void printServed(ServedFile &served, const Report &report, ReportKind kind) {
  if (kind == ReportKind::Text) {
    served.print(llvm::outs());
    llvm::outs() << '\n';
    print(llvm::outs(), report);
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

bool stage::driver::printTime(llvm::ArrayRef<const Program *> parts, const DriverOptions &options,
                              DiagnosticEngine &diags) {
  std::optional<StepActivity> step = findStepTime(parts, options.machine, options.traces, diags);
  if (step)
    print(llvm::outs(), std::move(*step), options.machine.hasRates());
  return step.has_value();
}

static bool runBackEnd(Compilation &c, const DriverOptions &options) {
  if (options.emit == EmitKind::Time)
    return printTime({c.program.get()}, options, c.diags);
  std::optional<Report> report;
  if (options.report != ReportKind::None || options.emit == EmitKind::Memory) {
    report = makeReport(c);
    if (!report)
      return false;
    if (options.emit == EmitKind::Memory)
      print(llvm::outs(), report->memory);
  }
  if (!options.traces.directory.empty()) {
    ProgressBar bar(llvm::errs());
    EmitOptions traces = options.traces;
    if (llvm::errs().is_displayed())
      traces.progress = &bar;
    std::optional<EmitStatistics> written = emitTraces(*c.program, traces, c.diags);
    if (!written)
      return false;
    if (report)
      report->traces = describe(*written, /*written=*/true, traces.steps);
  } else if (options.report != ReportKind::None) {
    if (std::optional<EmitStatistics> size = measureTraces(*c.program, options.traces, c.diags))
      report->traces = describe(*size, /*written=*/false, options.traces.steps);
    if (c.diags.hasErrors())
      return false;
  }
  if (options.servedFile && options.report != ReportKind::None)
    printServed(*options.servedFile, *report, options.report);
  else if (options.report == ReportKind::Text)
    print(llvm::outs(), *report);
  else if (options.report == ReportKind::Json)
    printJson(llvm::outs(), *report);
  return true;
}

bool stage::driver::compile(Compilation &c, const DriverOptions &options) {
  if (!runFrontEnd(c, options))
    return false;
  if (options.emit == EmitKind::Ast || options.emit == EmitKind::Job)
    return true;
  if (options.emit == EmitKind::Graph) {
    print(llvm::outs(), *c.graph);
    return true;
  }
  bool isPicture =
      options.emit == EmitKind::Schedule || options.emit == EmitKind::Mesh || options.emit == EmitKind::Dot;
  if (c.job->inference && c.job->inference->prefilled && !isPicture)
    return compilePools(c, options);
  if (!runMiddle(c, options))
    return false;
  if (options.emit == EmitKind::Program) {
    print(llvm::outs(), *c.program);
    return true;
  }
  if (options.emit == EmitKind::Schedule)
    return printSchedule(c, options);
  if (options.emit == EmitKind::Mesh)
    return printMesh(c, options);
  if (options.emit == EmitKind::Dot) {
    printDot(llvm::outs(), *c.graph);
    return true;
  }
  return runBackEnd(c, options);
}

int stage::driver::stagecMain(int argc, char **argv) {
  prepareProcess(/*failureCode=*/1);
  Compilation c;
  std::optional<DriverOptions> options = parseCommandLine(argc, argv, c.diags);
  if (!options)
    return 1;
  c.diags.setShowRemarks(options->remarks);
  c.diags.setWarningsAreErrors(options->warningsAreErrors);
  bool good = options->import           ? runImport(*options->import, c)
              : options->serve          ? runServe(*options->serve, c.diags)
              : options->prove          ? runProof(*options)
              : options->fits           ? runSearch(*options)
              : options->requests       ? runRequests(c, *options)
              : options->isComparison() ? runComparison(*options)
                                        : compile(c, *options);
  return flushStandardOutput(c.diags) && good ? 0 : 1;
}
