//===- Options.cpp - the command line of stagec ---------------------------===//
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/Config.h"
#include "stage/Support/Installation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"

using namespace stage;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("stagec options");
cl::opt<std::string> input(cl::Positional, cl::desc("<file.stg>"), cl::cat(category));
cl::opt<std::string> output("o", cl::desc("Write one trace per rank and comm_group.json into <folder>"),
                            cl::value_desc("folder"), cl::cat(category));
cl::opt<ReportKind> report("report", cl::ValueOptional, cl::desc("Show what a step costs: FLOPs, traffic, memory"),
                           cl::values(clEnumValN(ReportKind::Text, "", ""),
                                      clEnumValN(ReportKind::Text, "text", "for people"),
                                      clEnumValN(ReportKind::Json, "json", "one JSON object with exact numbers")),
                           cl::init(ReportKind::None), cl::cat(category));
cl::opt<EmitKind> emit("emit", cl::desc("Print what the program is at some phase, and stop"),
                       cl::values(clEnumValN(EmitKind::Ast, "ast", "the program as it was read"),
                                  clEnumValN(EmitKind::Job, "job", "the job with every name bound"),
                                  clEnumValN(EmitKind::Graph, "graph", "graph IR, before any pass"),
                                  clEnumValN(EmitKind::Program, "program", "units of every pipeline stage"),
                                  clEnumValN(EmitKind::Memory, "memory", "saved bytes, symbolically, and memory"),
                                  clEnumValN(EmitKind::Dot, "dot", "graph IR after all passes, for graphviz"),
                                  clEnumValN(EmitKind::Chakra, "chakra", "traces (needs -o; what -o means anyway)")),
                       cl::init(EmitKind::None), cl::cat(category));
cl::opt<std::string> job("job", cl::desc("Compile this job of the file"), cl::value_desc("name"), cl::cat(category));
cl::list<std::string> defines("D", cl::Prefix, cl::desc("Replace a value of the job, its config or its strategy"),
                              cl::value_desc("name=value"), cl::cat(category));
cl::list<std::string> includes("I", cl::Prefix, cl::desc("Look for imports in <folder>, too"),
                               cl::value_desc("folder"), cl::cat(category));
cl::opt<std::string> stdlib("stdlib", cl::desc("The folder of the standard library (default: the compiler's own)"),
                            cl::value_desc("folder"), cl::cat(category));
cl::opt<bool> force("force", cl::desc("Replace a folder of traces"), cl::cat(category));
cl::opt<std::string> ranks("ranks", cl::desc("Write the traces of these ranks only, as in 0,8-15"),
                           cl::value_desc("list"), cl::cat(category));
cl::opt<unsigned> jobs("j", cl::Prefix, cl::desc("Threads that write traces (default: one per core)"), cl::init(0),
                       cl::value_desc("n"), cl::cat(category));
enum class Names { All, None };
cl::opt<Names> names("names", cl::desc("Names of nodes"), cl::init(Names::All),
                     cl::values(clEnumValN(Names::All, "all", "every node has a name and op_type"),
                                clEnumValN(Names::None, "none", "smaller traces")),
                     cl::cat(category));
enum class Order { Control, Data };
cl::opt<Order> order("order", cl::desc("How the order of a rank's nodes is written"), cl::init(Order::Control),
                     cl::values(clEnumValN(Order::Control, "control", "as control dependencies"),
                                clEnumValN(Order::Data, "data", "as data dependencies, for consumers that read no others")),
                     cl::cat(category));
cl::opt<bool> tracker("tracker", cl::desc("Write the inputs and outputs of every node, for memory tracking"),
                      cl::cat(category));
cl::opt<bool> prove("prove",
                    cl::desc("Run the job on tiny sizes, every rank, and compare with the unsharded program"),
                    cl::cat(category));
cl::opt<bool> remarks("remarks", cl::desc("Say which rules decided shardings, and what communication follows"),
                      cl::cat(category));
cl::list<std::string> printAfter("print-after", cl::CommaSeparated, cl::desc("Print the graph after these passes"),
                                 cl::value_desc("pass"), cl::cat(category));
cl::opt<bool> printAfterAll("print-after-all", cl::desc("Print the graph after every pass"), cl::cat(category));
cl::opt<bool> verifyEach("verify-each", cl::desc("Verify the graph after every pass"), cl::cat(category));
cl::opt<bool> timePasses("time-passes", cl::desc("Say how long every pass took"), cl::cat(category));
} // namespace

/// `0,8-15`: inclusive ranges.
static bool parseRanks(llvm::StringRef text, std::vector<std::pair<int64_t, int64_t>> &result) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [first, last] = part.split('-');
    int64_t a, b;
    if (first.getAsInteger(10, a) || a < 0)
      return false;
    b = a;
    if (part.contains('-') && (last.getAsInteger(10, b) || b < a))
      return false;
    result.emplace_back(a, b);
  }
  return true;
}

std::optional<DriverOptions> stage::parseCommandLine(int argc, char **argv, DiagnosticEngine &diags) {
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "stagec " STAGE_VERSION "\n"; });
  if (!cl::ParseCommandLineOptions(argc, argv,
                                   "stagec: from a model and a parallel strategy to Chakra execution traces\n\n"
                                   "  stagec job.stg                   check the program\n"
                                   "  stagec job.stg --report          what a step costs\n"
                                   "  stagec job.stg --prove           does the strategy compute the same as one device?\n"
                                   "  stagec job.stg -o traces         one trace per rank\n"))
    return std::nullopt;
  DriverOptions options;
  unsigned errors = diags.getNumErrors();
  if (input.empty())
    diags.report(SMLoc(), diag::NoInput);
  options.input = input;
  options.job = job;
  // A shell variable that is not set must not be an option that is not given.
  for (const cl::opt<std::string> *option : {&job, &output, &ranks, &stdlib})
    if (option->getNumOccurrences() && option->empty())
      diags.report(SMLoc(), diag::EmptyOption) << ((option->ArgStr.size() > 1 ? "--" : "-") + option->ArgStr).str();
  for (const std::string &define : defines) {
    auto [name, value] = llvm::StringRef(define).split('=');
    if (name.trim().empty() || value.trim().empty())
      diags.report(SMLoc(), diag::BadDefine) << define;
    options.defines.push_back({name.trim().str(), value.trim().str()});
  }
  options.includeDirs.assign(includes.begin(), includes.end());
  options.stdlibDir = stdlib.getNumOccurrences() ? std::string(stdlib) : getStdlibFolder(argv[0]);
  // A folder that is not there would be looked into without effect.
  for (const std::string &folder : includes)
    if (!llvm::sys::fs::is_directory(folder))
      diags.report(SMLoc(), diag::CannotReadFile) << folder << "not a folder";
  options.emit = emit;
  options.report = report;
  options.prove = prove;
  options.remarks = remarks;
  options.passes.printAfter.assign(printAfter.begin(), printAfter.end());
  options.passes.printAfterAll = printAfterAll;
  options.passes.verifyEach = verifyEach;
  options.passes.timePasses = timePasses;
  options.traces.directory = output;
  options.traces.force = force;
  options.traces.names = names == Names::All;
  options.traces.tracker = tracker;
  options.traces.orderAsData = order == Order::Data;
  options.traces.jobs = jobs;
  if (!ranks.empty() && !parseRanks(ranks, options.traces.ranks))
    diags.report(SMLoc(), diag::BadRanks) << ranks;
  bool traces = !output.empty();
  // No flag is ignored (law L14). A report says how large the traces would be, which depends on some of them.
  auto checkNeedsTraces = [&](bool given, llvm::StringRef name) {
    if (given)
      diags.report(SMLoc(), diag::FlagNeedsOutput) << name;
  };
  if (!traces) {
    checkNeedsTraces(emit == EmitKind::Chakra, "--emit=chakra");
    checkNeedsTraces(force, "--force");
    checkNeedsTraces(!ranks.empty(), "--ranks");
    checkNeedsTraces(jobs.getNumOccurrences() > 0, "-j");
  }
  if (!traces && report == ReportKind::None) {
    checkNeedsTraces(names.getNumOccurrences() > 0, "--names");
    checkNeedsTraces(tracker, "--tracker");
    checkNeedsTraces(order.getNumOccurrences() > 0, "--order");
  }
  for (auto [given, name] : {std::pair(traces, "-o"), std::pair(emit != EmitKind::None, "--emit"),
                             std::pair(report != ReportKind::None, "--report")})
    if (prove && given)
      diags.report(SMLoc(), diag::ProveAndOutput) << name;
  if (traces && emit != EmitKind::None && emit != EmitKind::Chakra)
    diags.report(SMLoc(), diag::EmitAndOutput);
  if (report != ReportKind::None && emit != EmitKind::None && emit != EmitKind::Memory && emit != EmitKind::Chakra)
    diags.report(SMLoc(), diag::EmitAndReport);
  if (diags.getNumErrors() != errors)
    return std::nullopt;
  return options;
}
