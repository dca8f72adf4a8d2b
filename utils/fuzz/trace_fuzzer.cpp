//===- trace_fuzzer.cpp - no bytes crash the reader of traces -------------===//
//
// The input is the text of comm_group.json, a zero byte, and the file of rank 0. The
// folder is verified, counted and dumped; what was dumped whole is assembled and dumped
// again, and must be the same.
// How to build and run it: README.md.
//
//===----------------------------------------------------------------------===//
#include "stage/Trace/Statistics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/Verify.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::trace;

namespace {
/// A folder of its own, removed in the end.
struct Folder {
  llvm::SmallString<128> path;
  Folder() {
    if (llvm::sys::fs::createUniqueDirectory("stage-fuzz", path))
      llvm::report_fatal_error("no folder");
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string operator()(const char *name) const { return (path + "/" + name).str(); }
  void write(const char *name, llvm::StringRef bytes) const {
    std::error_code error;
    llvm::raw_fd_ostream((*this)(name), error) << bytes;
  }
};

struct Messages {
  std::string text;
  llvm::raw_string_ostream os{text};
  llvm::SourceMgr sources;
  DiagnosticEngine diags{sources, os};
};

/// The dump of a folder; empty if it has faults.
std::string dump(const std::string &folder) {
  Messages messages;
  std::string text;
  llvm::raw_string_ostream os(text);
  return dumpTraces(folder, {}, os, messages.diags) ? os.str() : "";
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  auto [groups, trace] = llvm::StringRef(reinterpret_cast<const char *>(data), size).split('\0');
  llvm::sys::fs::create_directory(folder("traces"));
  folder.write("traces/workload.0.et", trace);
  folder.write("traces/comm_group.json", groups);
  {
    Messages messages;
    verifyTraces(folder("traces"), {}, llvm::nulls(), messages.diags);
  }
  {
    Messages messages;
    printStatistics(folder("traces"), {true, true, true}, llvm::nulls(), messages.diags);
  }
  std::string once = dump(folder("traces"));
  if (once.empty())
    return 0;
  Messages messages;
  unsigned buffer =
      messages.sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(once, "dump"), llvm::SMLoc());
  AssembleOptions options;
  options.output = folder("again");
  options.force = true;
  bool good = assembleTraces(buffer, options, messages.diags);
  std::string twice = good ? dump(folder("again")) : "";
  if (once != twice) {
    llvm::errs() << "--- dumped\n" << once << "--- dumped again\n" << twice << messages.os.str();
    llvm::report_fatal_error("assemble does not read what dump writes");
  }
  return 0;
}
