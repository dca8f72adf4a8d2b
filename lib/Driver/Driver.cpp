//===- Driver.cpp - the phases of the compiler in order -------------------===//
#include "stage/Driver/Driver.h"
#include "stage/Parse/Parse.h"
#include "stage/Sema/Job.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
namespace cl = llvm::cl;

/// `-D name=value` as its two parts; without a `=` the value is empty, which is no expression.
static std::vector<sema::Override> readDefines(llvm::ArrayRef<std::string> defines) {
  std::vector<sema::Override> result;
  for (llvm::StringRef define : defines) {
    auto [name, value] = define.split('=');
    result.push_back({name.trim().str(), value.str()});
  }
  return result;
}

int stage::stagecMain(int argc, char **argv) {
  enum class Emit { Ast, Job };
  static cl::opt<std::string> inputFile(cl::Positional, cl::Required, cl::desc("<file.stg>"));
  static cl::opt<Emit> emit("emit", cl::desc("what to print"), cl::init(Emit::Ast),
                            cl::values(clEnumValN(Emit::Ast, "ast", "the program as it was read"),
                                       clEnumValN(Emit::Job, "job", "the job with every name bound")));
  static cl::opt<std::string> jobName("job", cl::desc("the job to compile, where the file declares several"),
                                      cl::value_desc("name"));
  static cl::list<std::string> defines("D", cl::Prefix, cl::desc("give a named value of the job another value"),
                                       cl::value_desc("name=value"));
  static cl::list<std::string> includes("I", cl::Prefix, cl::desc("where imports are looked for too"),
                                        cl::value_desc("folder"));
  static cl::opt<std::string> stdlib("stdlib", cl::desc("the folder of the standard library"),
                                     cl::value_desc("folder"));
  cl::ParseCommandLineOptions(argc, argv, "compiler from .stg programs to Chakra execution traces\n");

  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, llvm::errs());
  ast::ASTContext context;
  if (emit == Emit::Ast) {
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
    if (!buffer) {
      diags.report(SMLoc(), diag::CannotReadFile) << inputFile << buffer.getError().message();
      return 1;
    }
    unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
    ast::File *file = parseFile(context, diags, id);
    if (!file)
      return 1;
    ast::print(llvm::outs(), *file);
    return 0;
  }

  sema::Program program(context, diags, {stdlib, includes});
  if (!program.load(inputFile) || diags.hasErrors() || !sema::checkNames(program))
    return 1;
  SizeContext sizes;
  SizeBinding binding;
  Obligations obligations;
  std::optional<sema::BoundJob> job =
      sema::bindJob(program, jobName, readDefines(defines), sizes, binding, obligations, diags);
  if (!job || !obligations.check(binding, diags))
    return 1;
  sema::print(llvm::outs(), *job, sizes, binding);
  return 0;
}
