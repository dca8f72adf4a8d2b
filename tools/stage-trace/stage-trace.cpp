//===- stage-trace.cpp - look at Chakra execution traces ------------------===//
//
// Options and exit codes; the work is done in lib/Trace. Exit code 0: done, and good;
// 1: verify found faults or diff a difference; 2: the traces could not be read,
// written or run, or the command line is wrong.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/MachineRates.h"
#include "stage/Machine/RateOptions.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Files.h"
#include "stage/Support/Installation.h"
#include "stage/Support/Process.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/StandardOutput.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/Diff.h"
#include "stage/Trace/Merge.h"
#include "stage/Trace/Statistics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/Timeline.h"
#include "stage/Trace/Verify.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace stage;
using namespace stage::trace;

namespace {
cl::SubCommand dumpCommand("dump", "Print a trace file or a folder of them as text");
cl::SubCommand assembleCommand("assemble", "Write the traces that a text describes");
cl::SubCommand statsCommand("stats", "Count nodes, FLOPs and bytes of a folder");
cl::SubCommand verifyCommand("verify", "Check that the traces of a folder agree and finish");
cl::SubCommand timelineCommand("timeline", "Run the traces with times: how long a step takes, and when each node runs");
cl::SubCommand mergeCommand("merge", "Put the traces of several jobs beside each other in one folder");
cl::SubCommand diffCommand("diff", "Compare two trace files or two folders");

cl::opt<std::string> dumpPath(cl::Positional, cl::Required, cl::desc("FILE|DIR"), cl::sub(dumpCommand));
cl::opt<uint32_t> dumpRank("rank", cl::desc("Only this rank of a folder"), cl::sub(dumpCommand));
cl::opt<bool> dumpExpand("expand-groups", cl::desc("Show the ranks of each collective's group"), cl::sub(dumpCommand));

cl::opt<std::string> assemblePath(cl::Positional, cl::Required, cl::desc("TEXT"), cl::sub(assembleCommand));
cl::opt<std::string> assembleOutput("o", cl::Required, cl::desc("Folder to write"), cl::value_desc("dir"),
                                    cl::sub(assembleCommand));
cl::opt<std::string> assemblePrefix("prefix", cl::desc("Files are <prefix>.<rank>.et"), cl::init("workload"),
                                    cl::sub(assembleCommand));
cl::opt<bool> assembleForce("force", cl::desc("Replace a folder that holds traces"), cl::sub(assembleCommand));

cl::opt<std::string> statsPath(cl::Positional, cl::Required, cl::desc("DIR"), cl::sub(statsCommand));
cl::opt<bool> statsJson("json", cl::desc("Print JSON"), cl::sub(statsCommand));
cl::opt<bool> statsGroups("groups", cl::desc("Also show each group"), cl::sub(statsCommand));
cl::opt<bool> statsOps("ops", cl::desc("Also show each operator, by op_type"), cl::sub(statsCommand));

cl::opt<std::string> verifyPath(cl::Positional, cl::Required, cl::desc("DIR"), cl::sub(verifyCommand));
cl::opt<bool> verifyIgnoreCtrl("ignore-ctrl", cl::desc("Take data_deps only, as some consumers do"),
                               cl::sub(verifyCommand));
cl::opt<unsigned> verifyMaxErrors("max-errors", cl::desc("Messages shown per code (default 10)"), cl::init(10),
                                  cl::sub(verifyCommand));

cl::opt<std::string> timelinePath(cl::Positional, cl::Required, cl::desc("DIR"), cl::sub(timelineCommand));
cl::opt<std::string> timelineOutput("o", cl::desc("Write trace events (JSON) for Perfetto or chrome://tracing"),
                                    cl::value_desc("file"), cl::sub(timelineCommand));
cl::opt<bool> timelineForce("force", cl::desc("Replace the file of -o if it exists"), cl::sub(timelineCommand));
cl::opt<std::string> timelineRanks("ranks", cl::desc("Show and write these ranks only, as in 0,8-15; all are run"),
                                   cl::value_desc("list"), cl::sub(timelineCommand));
cl::opt<uint32_t> computeUnits("compute-units", cl::desc("Units of time that a compute node takes (default 1)"),
                               cl::init(1), cl::value_desc("n"), cl::sub(timelineCommand));
cl::opt<uint32_t> communicationUnits("communication-units",
                                     cl::desc("Units that a message or collective takes (default 1)"), cl::init(1),
                                     cl::value_desc("n"), cl::sub(timelineCommand));
cl::opt<uint32_t> copyUnits("copy-units", cl::desc("Units that a copy to or from the host takes (default 1)"),
                            cl::init(1), cl::value_desc("n"), cl::sub(timelineCommand));
RateOptions rateOptions(cl::getGeneralCategory(), {&timelineCommand}); // instead of units
cl::opt<std::string>
    timelineMachine("machine",
                    cl::desc("Take the rates of a machine of std.machines, h100, or of a file, my.stg:mine; "
                             "rate options replace its entries"),
                    cl::value_desc("name"), cl::sub(timelineCommand));
cl::opt<std::string> timelineType("type", cl::desc("Element type whose FLOP/s --machine takes (default: bf16)"),
                                  cl::init("bf16"), cl::value_desc("type"), cl::sub(timelineCommand));
cl::opt<std::string> timelineStdlib("stdlib", cl::desc("Folder of the library in which --machine is looked for"),
                                    cl::value_desc("dir"), cl::sub(timelineCommand));
enum class Sends { Buffered, Waiting };
cl::opt<Sends> timelineSends("sends", cl::desc("When a send ends"), cl::init(Sends::Buffered),
                             cl::values(clEnumValN(Sends::Buffered, "buffered", "when its bytes have left (default)"),
                                        clEnumValN(Sends::Waiting, "waiting", "with its recv, and begins with it")),
                             cl::sub(timelineCommand));
enum class Streams { Own, One };
cl::opt<Streams> timelineStreams(
    "streams", cl::desc("What runs beside each other"), cl::init(Streams::Own),
    cl::values(clEnumValN(Streams::Own, "own", "streams, and copies beside communication (default)"),
               clEnumValN(Streams::One, "one", "one compute and one communication or copy, as on ASTRA-sim")),
    cl::sub(timelineCommand));

cl::list<std::string> mergePaths(cl::Positional, cl::OneOrMore, cl::desc("DIR..."), cl::sub(mergeCommand));
cl::opt<std::string> mergeOutput("o", cl::Required, cl::desc("Folder to write"), cl::value_desc("dir"),
                                 cl::sub(mergeCommand));
cl::opt<std::string> mergePrefix("prefix", cl::desc("Files are <prefix>.<rank>.et"), cl::init("workload"),
                                 cl::sub(mergeCommand));
cl::opt<bool> mergeForce("force", cl::desc("Replace a folder that holds traces"), cl::sub(mergeCommand));
cl::list<std::string> mergeRanks("ranks",
                                 cl::desc("Once per DIR: its ranks from now on, as in 0,8-15 (default: behind those of "
                                          "the DIR before)"),
                                 cl::value_desc("list"), cl::sub(mergeCommand));

cl::opt<std::string> diffFirst(cl::Positional, cl::Required, cl::desc("A"), cl::sub(diffCommand));
cl::opt<std::string> diffSecond(cl::Positional, cl::Required, cl::desc("B"), cl::sub(diffCommand));
cl::opt<bool> diffIgnoreNames("ignore-names", cl::desc("Do not compare names of nodes"), cl::sub(diffCommand));

enum ExitCode { Good = 0, Faults = 1, Unreadable = 2 };
} // namespace

/// False after a report.
static bool checkPrefix(const std::string &prefix, DiagnosticEngine &diags) {
  // Ranks are found by the names of their files.
  bool good = !prefix.empty() && prefix.find('/') == std::string::npos;
  if (!good)
    diags.report(SMLoc(), diag::CannotWriteFile)
        << (prefix + ".0.et") << "--prefix must be the beginning of a file's name";
  return good;
}

static int assemble(SourceMgr &sources, DiagnosticEngine &diags) {
  if (!checkPrefix(assemblePrefix, diags))
    return Unreadable;
  if (!checkKeepsInput(assembleOutput, assemblePath, diags))
    return Unreadable;
  // The text of traces is several times longer than they are.
  constexpr uint64_t maxBytes = uint64_t(8) << 30;
  auto file = readFile(assemblePath, diags, maxBytes);
  if (!file)
    return Unreadable;
  unsigned buffer = sources.AddNewSourceBuffer(std::move(file), SMLoc());
  return assembleTraces(buffer, {assembleOutput, assemblePrefix, assembleForce}, diags) ? Good : Unreadable;
}

/// `--machine` and what goes with it: rates without a name where it is not given. Nothing after a report.
static std::optional<MachineRates> readTimelineMachine(const char *argv0, DiagnosticEngine &diags) {
  bool isGiven = timelineMachine.getNumOccurrences() > 0;
  for (const cl::opt<std::string> *option : {&timelineType, &timelineStdlib})
    if (option->getNumOccurrences() && !isGiven)
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << ("--" + option->ArgStr).str() << "no machine is given (--machine)";
  if (!isGiven)
    return MachineRates();
  auto [file, name] = StringRef(timelineMachine).rsplit(':');
  std::string library = timelineStdlib.getNumOccurrences() ? std::string(timelineStdlib) : getStdlibFolder(argv0);
  if (name.empty()) {
    name = StringRef(timelineMachine);
    file = "";
  }
  DiagnosticPrinter printer(errs());
  Session session({.input = file.empty() ? library + "/machines.stg" : file.str(), .stdlibDir = library}, &printer);
  std::optional<MachineRates> rates = findRates(session, name, timelineType);
  return rates;
}

/// Of the options of `timeline`. Nothing after reports.
static std::optional<TimelineOptions> readTimelineOptions(const char *argv0, DiagnosticEngine &diags) {
  TimelineOptions options;
  options.output = timelineOutput;
  options.force = timelineForce;
  options.sendsAreBuffered = timelineSends == Sends::Buffered;
  options.mergesStreams = timelineStreams == Streams::One;
  if (timelineOutput.getNumOccurrences() && timelineOutput.empty())
    diags.report(SMLoc(), diag::EmptyOption) << "-o";
  if (timelineForce && (timelineOutput.empty() || timelineOutput == "-"))
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--force"
                                                   << "no file is written (-o)";
  if (timelineRanks.getNumOccurrences() && !parseRanges(timelineRanks, options.ranks))
    diags.report(SMLoc(), diag::BadRanks) << timelineRanks;
  const cl::Option *givenUnit = nullptr;
  for (const cl::opt<uint32_t> *option : {&computeUnits, &communicationUnits, &copyUnits})
    if (isChanged(*option))
      givenUnit = option;
  if (givenUnit)
    options.machine = MachineUnits{computeUnits, communicationUnits, copyUnits};
  std::optional<MachineRates> machine = readTimelineMachine(argv0, diags);
  if (!machine)
    return std::nullopt;
  std::vector<std::string> rates = rateOptions.listGiven();
  if (!machine->name.empty())
    rates.insert(rates.begin(), "--machine");
  if (!rates.empty()) {
    options.machine = rateOptions.read(diags, std::move(*machine));
    if (givenUnit)
      diags.report(SMLoc(), diag::RatesAndUnits) << rates.front() << ("--" + givenUnit->ArgStr).str();
  }
  if (diags.hasErrors())
    return std::nullopt;
  return options;
}

static int run(const char *argv0, SourceMgr &sources, DiagnosticEngine &diags) {
  if (dumpCommand) {
    DumpOptions options;
    if (dumpRank.getNumOccurrences())
      options.rank = dumpRank;
    options.expandGroups = dumpExpand;
    if (!sys::fs::is_directory(dumpPath) && (dumpRank.getNumOccurrences() || dumpExpand)) {
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << (dumpExpand ? "--expand-groups" : "--rank") << "'" + dumpPath + "' is no folder of traces";
      return Unreadable;
    }
    return dumpTraces(dumpPath, options, outs(), diags) ? Good : Unreadable;
  }
  if (assembleCommand)
    return assemble(sources, diags);
  if (statsCommand)
    return printStatistics(statsPath, {statsJson, statsGroups, statsOps}, outs(), diags) ? Good : Unreadable;
  if (verifyCommand)
    return verifyTraces(verifyPath, {verifyIgnoreCtrl, verifyMaxErrors}, outs(), diags) ? Good : Faults;
  if (timelineCommand) {
    std::optional<TimelineOptions> options = readTimelineOptions(argv0, diags);
    return options && printTimeline(timelinePath, *options, outs(), diags) ? Good : Unreadable;
  }
  if (mergeCommand) {
    MergeOptions options = {mergeOutput, mergePrefix, mergeForce, mergeRanks};
    return checkPrefix(mergePrefix, diags) && mergeTraces(mergePaths, options, diags) ? Good : Unreadable;
  }
  if (diffCommand) {
    std::optional<bool> same = diffTraces(diffFirst, diffSecond, {diffIgnoreNames}, outs(), diags);
    return !same ? Unreadable : *same ? Good : Faults;
  }
  cl::PrintHelpMessage();
  return Unreadable;
}

int main(int argc, char **argv) {
  prepareProcess(Unreadable);
  // A reader of a pipe that goes away ends this as it ends other tools, by SIGPIPE.
  InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  static const OptionHelp help{"stage-trace", "stage-trace verify traces"};
  if (!parseOptions(argc, argv, help, "Looks at Chakra execution traces.\n"))
    return Unreadable;
  SourceMgr sources;
  DiagnosticEngine diags(sources, errs());
  int code = run(argv[0], sources, diags);
  return flushStandardOutput(diags) ? code : Unreadable;
}
