//===- Driver.cpp - the phases of the compiler in order -------------------===//
#include "stage/Driver/Driver.h"
#include "stage/Parse/Parse.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
namespace cl = llvm::cl;

int stage::stagecMain(int argc, char **argv) {
  enum class Emit { Ast };
  static cl::opt<std::string> inputFile(cl::Positional, cl::Required, cl::desc("<file.stg>"));
  static cl::opt<Emit> emit("emit", cl::desc("what to print"), cl::init(Emit::Ast),
                            cl::values(clEnumValN(Emit::Ast, "ast", "the program as it was read")));
  cl::ParseCommandLineOptions(argc, argv, "compiler from .stg programs to Chakra execution traces\n");

  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, llvm::errs());
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!buffer) {
    diags.report(SMLoc(), diag::CannotReadFile) << inputFile << buffer.getError().message();
    return 1;
  }
  unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
  ast::ASTContext context;
  ast::File *file = parseFile(context, diags, id);
  if (!file)
    return 1;
  ast::print(llvm::outs(), *file);
  return 0;
}
