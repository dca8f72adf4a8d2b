//===- Compilation.h - what the phases hand on -----------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_COMPILATION_H
#define STAGE_LIB_DRIVER_COMPILATION_H

#include "Options.h"
#include "stage/AST/AST.h"
#include "stage/IR/Program.h"

namespace stage {

/// Everything a compilation owns, in the order of the phases.
struct Compilation {
  explicit Compilation(llvm::raw_ostream &messages = llvm::errs()) : diags(sources, messages) {}

  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ast::ASTContext ast;
  SizeContext sizes;
  SizeBinding binding;
  Obligations obligations;
  std::unique_ptr<sema::Program> files;
  std::optional<sema::BoundJob> job;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Program> program;
};

/// Reads the program, binds the job, and makes the graph (or prints what `--emit` asks for of these phases). False
/// after errors.
bool runFrontEnd(Compilation &c, const DriverOptions &options);
/// All passes, then the program. False after errors.
bool runMiddle(Compilation &c, const DriverOptions &options);
/// `--prove`: compiles the job with a small mesh, runs it on tiny sizes, and prints what was proved. False after
/// errors.
bool runProof(const DriverOptions &options);

} // namespace stage

#endif // STAGE_LIB_DRIVER_COMPILATION_H
