//===- stage-trace.cpp - look at Chakra execution traces ------------------===//
//
// Options and exit codes; the work is done in lib/Trace. Exit code 0: done, and good;
// 1: verify found faults or diff a difference; 2: the traces could not be read or
// written.
//
//===----------------------------------------------------------------------===//
#include "stage/Support/Files.h"
#include "stage/Support/Process.h"
#include "stage/Support/StandardOutput.h"
#include "stage/Trace/Diff.h"
#include "stage/Trace/Statistics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/Verify.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace stage;

namespace {
cl::SubCommand dumpCommand("dump", "Print a trace file or a folder of them as text");
cl::SubCommand assembleCommand("assemble", "Write the traces that a text describes");
cl::SubCommand statsCommand("stats", "Count nodes, FLOPs and bytes of a folder");
cl::SubCommand verifyCommand("verify", "Check that the traces of a folder agree and finish");
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

cl::opt<std::string> diffFirst(cl::Positional, cl::Required, cl::desc("A"), cl::sub(diffCommand));
cl::opt<std::string> diffSecond(cl::Positional, cl::Required, cl::desc("B"), cl::sub(diffCommand));
cl::opt<bool> diffIgnoreNames("ignore-names", cl::desc("Do not compare names of nodes"), cl::sub(diffCommand));

enum ExitCode { Good = 0, Faults = 1, Unreadable = 2 };
} // namespace

static int assemble(SourceMgr &sources, DiagnosticEngine &diags) {
  // Ranks are found by the names of their files.
  if (assemblePrefix.empty() || assemblePrefix.find('/') != std::string::npos) {
    diags.report(SMLoc(), diag::CannotWriteFile)
        << (assemblePrefix + ".0.et") << "--prefix must be the beginning of a file's name";
    return Unreadable;
  }
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

static int run(SourceMgr &sources, DiagnosticEngine &diags) {
  if (dumpCommand) {
    DumpOptions options;
    if (dumpRank.getNumOccurrences())
      options.rank = dumpRank;
    options.expandGroups = dumpExpand;
    if (!sys::fs::is_directory(dumpPath) && (dumpRank.getNumOccurrences() || dumpExpand)) {
      diags.report(SMLoc(), diag::FlagWithoutEffect) << (dumpExpand ? "--expand-groups" : "--rank")
                                                     << "'" + dumpPath + "' is no folder of traces";
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
  if (diffCommand) {
    std::optional<bool> same = diffTraces(diffFirst, diffSecond, {diffIgnoreNames}, outs(), diags);
    return !same ? Unreadable : *same ? Good : Faults;
  }
  cl::PrintHelpMessage();
  return Unreadable;
}

int main(int argc, char **argv) {
  prepareProcess(Unreadable);
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Looks at Chakra execution traces.\n");
  SourceMgr sources;
  DiagnosticEngine diags(sources, errs());
  int code = run(sources, diags);
  return flushStandardOutput(diags) ? code : Unreadable;
}
