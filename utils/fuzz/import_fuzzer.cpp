//===- import_fuzzer.cpp - no configuration crashes the importer ----------===//
//
// Feeds arbitrary text to `stagec import` as a configuration. Nothing is returned if, and only if, an error was
// reported, and a program that is returned parses and has no unknown names: what is in a configuration cannot become
// anything but values of the config. Whether those fit together binding says, which must not crash either.
//
//===----------------------------------------------------------------------===//
#include "stage/IRGen/IRGen.h"
#include "stage/Import/Import.h"
#include "stage/Sema/Job.h"
#include "stage/Support/Files.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::importer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, os);
  auto add = [&](std::unique_ptr<llvm::MemoryBuffer> buffer) {
    return sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  };
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  unsigned configuration = add(llvm::MemoryBuffer::getMemBufferCopy(input, "fuzz.json"));
  const char *path = STAGE_STDLIB "/huggingface.json";
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> table = readFile(path, error);
  if (!table)
    llvm::report_fatal_error("no table");
  std::optional<ImportedProgram> program = importConfiguration(configuration, add(std::move(table)), {path, {}}, diags);
  if (program.has_value() == diags.hasErrors()) {
    llvm::errs() << os.str();
    llvm::report_fatal_error("nothing is imported if, and only if, an error is reported");
  }
  if (!program)
    return 0;
  ast::ASTContext context;
  sema::Program files(context, diags, {STAGE_STDLIB, {}});
  if (!files.loadBuffer(add(llvm::MemoryBuffer::getMemBufferCopy(program->text, "job.stg")), "job.stg") ||
      diags.hasErrors() || !sema::checkNames(files)) {
    llvm::errs() << program->text << os.str();
    llvm::report_fatal_error("an imported program is no program");
  }
  SizeContext sizes;
  SizeBinding binding;
  Obligations obligations;
  std::optional<sema::BoundJob> job = sema::bindJob(files, "", {}, sizes, binding, obligations, diags);
  if (job)
    generateGraph(files, *job, sizes, binding, obligations, diags);
  return 0;
}
