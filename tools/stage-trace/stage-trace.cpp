//===- stage-trace.cpp - look at Chakra execution traces ------------------===//
//
// Options and exit codes; the work is done in lib/Trace. Exit code 0: done, and good;
// 1: verify found faults or diff a difference; 2: the traces could not be read or
// written.
//
//===----------------------------------------------------------------------===//
#include "stage/Support/StandardOutput.h"
#include "stage/Trace/Diff.h"
#include "stage/Trace/Statistics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/Verify.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
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
  auto file = MemoryBuffer::getFileOrSTDIN(assemblePath);
  if (!file) {
    diags.report(SMLoc(), diag::CannotReadFile) << assemblePath.getValue() << file.getError().message();
    return Unreadable;
  }
  unsigned buffer = sources.AddNewSourceBuffer(std::move(*file), SMLoc());
  return assembleTraces(buffer, {assembleOutput, assemblePrefix, assembleForce}, diags) ? Good : Unreadable;
}

static int run(SourceMgr &sources, DiagnosticEngine &diags) {
  if (dumpCommand) {
    DumpOptions options;
    if (dumpRank.getNumOccurrences())
      options.rank = dumpRank;
    options.expandGroups = dumpExpand;
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
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Looks at Chakra execution traces.\n");
  SourceMgr sources;
  DiagnosticEngine diags(sources, errs());
  int code = run(sources, diags);
  return flushStandardOutput(diags) ? code : Unreadable;
}
