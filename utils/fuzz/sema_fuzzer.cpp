//===- sema_fuzzer.cpp - no program crashes the front end -----------------===//
//
// Feeds arbitrary text to the front end, as the main file of a program beside the
// standard library: names are checked, every job is bound, its graph is made. Two
// things must hold besides not crashing: nothing is returned if, and only if, an error
// was reported; and a graph verifies.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/verify/Verifier.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Sema/Job.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
/// The messages of one input, and how many errors they had when last looked at.
class Messages {
public:
  std::string text;
  llvm::raw_string_ostream os{text};
  llvm::SourceMgr sources;
  DiagnosticEngine diags{sources, os};

  /// `succeeded` must agree with whether errors were reported since the last look.
  bool check(bool succeeded, const char *phase) {
    bool reported = diags.getNumErrors() != seen;
    seen = diags.getNumErrors();
    if (succeeded != reported)
      return succeeded;
    llvm::errs() << os.str() << phase << (succeeded ? " succeeded with errors\n" : " failed without an error\n");
    llvm::report_fatal_error("a phase fails if, and only if, it reports an error");
  }

private:
  unsigned seen = 0;
};
} // namespace

static void compile(const sema::Program &files, const ast::JobDecl &decl, Messages &messages) {
  SizeContext sizes;
  SizeBinding binding;
  Obligations obligations;
  std::optional<sema::BoundJob> job = sema::bindJob(const_cast<sema::Program &>(files), decl.name.name, {}, sizes,
                                                    binding, obligations, messages.diags);
  if (!messages.check(job.has_value(), "bindJob"))
    return;
  std::unique_ptr<Graph> graph = generateGraph(files, *job, sizes, binding, obligations, messages.diags);
  if (!messages.check(graph != nullptr, "generateGraph"))
    return;
  if (!verify(*graph, messages.diags)) {
    llvm::errs() << messages.os.str();
    llvm::report_fatal_error("a graph of the front end does not verify");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Messages messages;
  ast::ASTContext context;
  sema::Program files(context, messages.diags, {STAGE_STDLIB, {}});
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  unsigned id =
      messages.sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.stg"), llvm::SMLoc());
  const ast::File *file = files.loadBuffer(id, "fuzz.stg");
  // A file that was read stays, though what it imports has faults.
  if (!file || messages.diags.hasErrors()) {
    messages.check(false, "loadBuffer");
    return 0;
  }
  if (!messages.check(sema::checkNames(files), "checkNames"))
    return 0;
  for (const ast::Decl *decl : file->decls)
    if (auto *job = llvm::dyn_cast<ast::JobDecl>(decl))
      compile(files, *job, messages);
  return 0;
}
