//===- Result.h - what became of a plan ------------------------*- C++ -*-===//
//
// A plan that was compiled has a report (FLOPs, bytes of communication, memory), the program of every pipeline stage
// and perhaps warnings. A plan that was refused has no report, and its first error says why.
//
// A result belongs to the session that made it (Session.h), which must outlive it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_RESULT_H
#define STAGE_COMPILER_RESULT_H

#include "stage/Compiler/Compilation.h"

namespace stage {

class Result {
public:
  /// What the plan costs: numbers of a step of all ranks, and memory in bytes of the busiest rank of each stage. Null:
  /// the plan was refused.
  const Report *getReport() const { return report ? &*report : nullptr; }
  /// Why the plan was refused: a code, a place and a text. Null: it was not.
  const Diagnostic *getRefusal() const { return report ? nullptr : findError(messages->all); }
  /// Errors and warnings, in order.
  llvm::ArrayRef<Diagnostic> getDiagnostics() const { return messages->all; }
  /// The bound job, the graph after all passes and the program of each stage, of which traces and pictures are made; of
  /// a plan that was refused, as far as it came. What is reported while they are made is added to the diagnostics.
  Compilation &getCompilation() { return *compilation; }
  const Compilation &getCompilation() const { return *compilation; }

private:
  friend class Session;
  Result(Session &session, bool warningsAreErrors);

  std::unique_ptr<DiagnosticList> messages;
  std::unique_ptr<DiagnosticEngine> diags;
  std::unique_ptr<Compilation> compilation;
  std::optional<Report> report;
};

} // namespace stage

#endif // STAGE_COMPILER_RESULT_H
