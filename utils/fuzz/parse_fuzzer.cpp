//===- parse_fuzzer.cpp - no text crashes the parser ----------------------===//
//
// Feeds arbitrary text to the parser. Text that is a program is printed and read
// again: what is printed must be a program, and print as itself.
// How to build and run it: README.md.
//
//===----------------------------------------------------------------------===//
#include "stage/Parse/Parse.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

/// The printed program; empty, and `isProgram` false, if it is none.
static std::string printed(llvm::StringRef text, bool &isProgram) {
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources);
  ast::ASTContext context;
  unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.stg"), SMLoc());
  ast::File *file = parseFile(context, diags, id);
  isProgram = file != nullptr;
  if (isProgram == diags.hasErrors())
    llvm::report_fatal_error("a file is missing if, and only if, errors are reported");
  std::string result;
  llvm::raw_string_ostream os(result);
  if (file)
    ast::print(os, *file);
  return os.str();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool isProgram;
  std::string once = printed(llvm::StringRef(reinterpret_cast<const char *>(data), size), isProgram);
  if (!isProgram)
    return 0;
  std::string twice = printed(once, isProgram);
  if (!isProgram || once != twice) {
    llvm::errs() << "--- printed\n" << once << "--- printed again\n" << twice;
    llvm::report_fatal_error("printing is no fixed point");
  }
  return 0;
}
