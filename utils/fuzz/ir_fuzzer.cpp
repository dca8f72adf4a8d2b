//===- ir_fuzzer.cpp - no text crashes the graph IR -----------------------===//
//
// Feeds arbitrary text to the reader of graph IR. A graph that verifies is printed and
// read again, and must print as itself; then the passes that its head does not name run in their order, and the
// program is built. A phase fails if, and only if, it reports an error; what a pass
// leaves verifies.
// How to build and run it: README.md.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/text/Text.h"
#include "stage/IR/verify/Verifier.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
/// A graph and the messages about it.
struct Reading {
  std::string messages;
  llvm::raw_string_ostream os{messages};
  llvm::SourceMgr sources;
  DiagnosticEngine diags{sources, os};
  SizeContext sizes;
  std::unique_ptr<Graph> graph;

  explicit Reading(llvm::StringRef text) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.sir"), llvm::SMLoc());
    graph = parseGraph(sizes, diags, buffer);
    check(graph != nullptr, "parseGraph");
    if (graph && !verify(*graph, diags))
      graph.reset();
  }
  void check(bool succeeded, const char *phase) {
    if (succeeded != diags.hasErrors())
      return;
    llvm::errs() << os.str() << phase << (succeeded ? " succeeded with errors\n" : " failed without an error\n");
    llvm::report_fatal_error("a phase fails if, and only if, it reports an error");
  }
};

std::string printed(const Graph &graph) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, graph);
  return os.str();
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Reading first(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!first.graph)
    return 0;
  std::string once = printed(*first.graph);
  Reading second(once);
  if (!second.graph || printed(*second.graph) != once) {
    llvm::errs() << "--- printed\n" << once << "--- messages\n" << second.os.str();
    llvm::report_fatal_error("printing is no fixed point");
  }
  PassOptions options;
  options.verifyEach = true;
  PassManager manager(getAllPasses(), first.diags, options, llvm::nulls());
  manager.addRemaining(*first.graph);
  bool good = manager.run(*first.graph);
  first.check(good, "a pass");
  if (!good) {
    if (llvm::StringRef(first.os.str()).contains("[broken-by-pass]")) {
      llvm::errs() << first.os.str();
      llvm::report_fatal_error("a pass broke the graph");
    }
    return 0;
  }
  first.check(buildProgram(*first.graph, first.diags) != nullptr, "buildProgram");
  return 0;
}
