//===- stagec-opt.cpp - run passes on the text of a graph -----------------===//
//
// Reads a graph, verifies it, runs passes, verifies it again and prints it, or what
// follows from it (`--emit`). Options and exit codes only. Exit code 0: printed; 1: the graph or a pass has errors; 2:
// a file cannot be read or written, or the command line is wrong. Nothing is printed after an error.
//
//===----------------------------------------------------------------------===//
#include "stage/CodeGen/Emit.h"
#include "stage/IR/graph/Workload.h"
#include "stage/IR/text/Text.h"
#include "stage/IR/verify/Verifier.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Memory/Memory.h"
#include "stage/Report/Report.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Files.h"
#include "stage/Support/Process.h"
#include "stage/Support/StandardOutput.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/LinkParts.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace stage;
using namespace stage::interp;

namespace {
cl::OptionCategory category("stagec-opt options");
cl::opt<std::string> inputPath(cl::Positional, cl::desc("FILE.sir"), cl::init("-"), cl::cat(category));
cl::opt<std::string> outputPath("o", cl::desc("File to write (default: standard output), or folder for traces"),
                                cl::value_desc("file"), cl::init("-"), cl::cat(category));
cl::opt<std::string> pipeline("passes", cl::desc("Passes to run, in order"), cl::value_desc("a,b,..."),
                              cl::cat(category));
cl::list<std::string> printAfter("print-after", cl::desc("Print the graph after these passes"),
                                 cl::value_desc("a,b,..."), cl::CommaSeparated, cl::cat(category));
enum class Emit { Graph, Program, Memory, Report, ReportJson, Traces };
cl::opt<Emit> emit("emit", cl::desc("What to print"), cl::init(Emit::Graph), cl::cat(category),
                   cl::values(clEnumValN(Emit::Graph, "graph", "the graph after the passes (default)"),
                              clEnumValN(Emit::Program, "program", "what each pipeline stage runs, in order"),
                              clEnumValN(Emit::Memory, "memory", "what each pipeline stage holds"),
                              clEnumValN(Emit::Report, "report", "parameters, FLOPs, communication and memory"),
                              clEnumValN(Emit::ReportJson, "report-json", "the report as JSON"),
                              clEnumValN(Emit::Traces, "traces", "one trace per rank, into the folder that -o names")));
cl::opt<bool> tracker("tracker", cl::desc("Traces: list the tensors that each node reads and writes"),
                      cl::cat(category));
enum class Streams { Own, One };
cl::opt<Streams> streams("streams", cl::desc("Traces: what nodes run on"), cl::init(Streams::Own), cl::cat(category),
                         cl::values(clEnumValN(Streams::Own, "own", "the streams of the graph (default)"),
                                    clEnumValN(Streams::One, "one", "one for communication, one for computation")));
cl::opt<unsigned> steps("steps", cl::desc("Traces: training steps that they are of (default: 1)"), cl::init(1),
                        cl::cat(category));
cl::opt<bool> printAfterAll("print-after-all", cl::desc("Print the graph after every pass"), cl::cat(category));
cl::opt<bool> verifyEach("verify-each", cl::desc("Verify the graph after every pass"), cl::cat(category));
cl::opt<bool> timePasses("time-passes", cl::desc("Print how long every pass took"), cl::cat(category));
cl::opt<bool> proof("prove",
                    cl::desc("Execute the graph after the passes and compare it with the graph as it was read"),
                    cl::cat(category));
cl::opt<bool> remarks("remarks", cl::desc("Show remarks"), cl::cat(category));
cl::opt<bool> listPasses("list-passes", cl::desc("List all passes and exit"), cl::cat(category));

enum ExitCode { Good = 0, Faults = 1, Unusable = 2 };

/// What all parts have, or one that is alone.
template <typename T>
void printParts(raw_ostream &os, const std::vector<T> &parts, void (*print)(raw_ostream &, const T &)) {
  for (const T &part : parts) {
    os << (&part == &parts.front() ? "" : "\n");
    print(os, part);
  }
}

/// Prints what `--emit` asks for. False after errors.
bool printResult(raw_ostream &os, Workload &workload, DiagnosticEngine &diags) {
  if (emit == Emit::Graph) {
    print(os, workload);
    return true;
  }
  std::unique_ptr<LinkedProgram> linked = linkParts(workload, diags);
  if (!linked)
    return false;
  if (emit == Emit::Program) {
    for (auto &part : linked->parts) {
      os << (part == linked->parts.front() ? "" : "\n");
      print(os, *part);
    }
    return true;
  }
  if (emit == Emit::Traces) {
    EmitOptions options;
    options.directory = outputPath;
    options.tracker = tracker;
    options.mergesStreams = streams == Streams::One;
    options.steps = steps;
    return emitTraces(*linked, options, diags).has_value();
  }
  std::vector<MemoryReport> memory;
  for (auto &part : linked->parts)
    memory.push_back(accountMemory(*part, diags));
  if (diags.hasErrors())
    return false;
  if (emit == Emit::Memory) {
    printParts<MemoryReport>(os, memory, print);
    return true;
  }
  std::vector<Report> reports;
  for (auto [part, ofPart] : llvm::zip(linked->parts, memory))
    reports.push_back(makeReport(*part, std::move(ofPart), diags));
  if (diags.hasErrors())
    return false;
  if (emit == Emit::Report)
    printParts<Report>(os, reports, print);
  else if (reports.size() == 1)
    printJson(os, reports.front());
  else
    printJson(os, reports);
  return true;
}

/// Executes a workload against another reading of the buffer it was read from, at tiny sizes.
bool proveWorkload(raw_ostream &os, Workload &workload, SizeContext &sizes, DiagnosticEngine &diags, unsigned buffer) {
  std::unique_ptr<Workload> reference = parseWorkload(sizes, diags, buffer);
  std::vector<ProofSizes> made;
  if (!bindTinySizes(workload, made, diags))
    return false;
  for (auto [before, after] : llvm::zip(reference->parts, workload.parts))
    before->binding = after->binding;
  std::optional<std::vector<Proof>> result = prove(*reference, workload, diags);
  for (size_t part = 0; result && part < result->size(); ++part) {
    std::string whose = result->size() > 1 ? workload.parts[part]->name + ": " : "";
    made[part].print(os, whose);
    os << whose;
    print(os, *workload.parts[part], (*result)[part]);
  }
  return result.has_value();
}
} // namespace

/// No flag is ignored (law L14). False after a report.
static bool checkOptions(DiagnosticEngine &diags) {
  unsigned errors = diags.getNumErrors();
  if (proof && emit.getNumOccurrences())
    diags.report(SMLoc(), diag::ProveAndEmit);
  auto refuse = [&](cl::Option &option, StringRef why) {
    if (option.getNumOccurrences())
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << ((option.ArgStr.size() > 1 ? "--" : "-") + option.ArgStr) << why;
  };
  if (listPasses)
    for (cl::Option *option :
         std::initializer_list<cl::Option *>{&outputPath, &pipeline, std::addressof(printAfter), &emit, &printAfterAll,
                                             &verifyEach, &timePasses, &proof, &remarks})
      refuse(*option, "--list-passes prints the list of passes only");
  if (listPasses && inputPath.getNumOccurrences())
    diags.report(SMLoc(), diag::FlagWithoutEffect) << inputPath << "--list-passes prints the list of passes only";
  if (!listPasses && pipeline.empty())
    for (cl::Option *option :
         std::initializer_list<cl::Option *>{&pipeline, &printAfterAll, &verifyEach, &timePasses, &remarks})
      refuse(*option, "no pass is run; name some with --passes");
  if (emit == Emit::Traces && outputPath == "-")
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--emit=traces"
                                                   << "no folder is named; name one with -o";
  if (emit != Emit::Traces)
    for (cl::Option *option : std::initializer_list<cl::Option *>{&tracker, &streams, &steps})
      refuse(*option, "no traces are written; ask for them with --emit=traces");
  checkNumSteps(steps, diags);
  if (outputPath.empty())
    diags.report(SMLoc(), diag::CannotWriteFile) << outputPath << "the name is empty";
  if (!listPasses)
    checkKeepsInput(outputPath, inputPath, diags);
  return diags.getNumErrors() == errors;
}

int main(int argc, char **argv) {
  prepareProcess(Unusable);
  InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  cl::HideUnrelatedOptions(category);
  static const OptionHelp help{"stagec-opt", "stagec-opt graph.sir --emit=graph"};
  if (!parseOptions(argc, argv, help, "Runs passes on the text of a graph.\n"))
    return Unusable;
  SourceMgr sources;
  DiagnosticEngine diags(sources, errs());
  if (!checkOptions(diags))
    return Unusable;
  if (listPasses) {
    printPassList(outs(), getAllPasses());
    return flushStandardOutput(diags) ? Good : Unusable;
  }
  diags.setShowRemarks(remarks);
  PassManager manager(getAllPasses(), diags, {printAfter, printAfterAll, verifyEach, timePasses}, errs());
  if (!manager.addPipeline(pipeline))
    return Unusable;

  auto file = readFile(inputPath, diags);
  if (!file)
    return Unusable;
  SizeContext sizes;
  unsigned buffer = sources.AddNewSourceBuffer(std::move(file), SMLoc());
  std::unique_ptr<Workload> workload = parseWorkload(sizes, diags, buffer);
  if (!workload || !verify(*workload, diags))
    return Faults;
  for (auto &part : workload->parts)
    if (!manager.run(*part))
      return Faults;
  if (!verify(*workload, diags))
    return Faults;

  // Nothing of the output is touched before all of it is known.
  std::string text;
  raw_string_ostream os(text);
  if (!(proof ? proveWorkload(os, *workload, sizes, diags, buffer) : printResult(os, *workload, diags)))
    return Faults;
  return emit == Emit::Traces || writeFile(outputPath, os.str(), Existing::Replace, diags) ? Good : Unusable;
}
