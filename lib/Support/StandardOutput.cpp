//===- StandardOutput.cpp - the end of what a command prints --------------===//
#include "stage/Support/StandardOutput.h"

using namespace stage;

bool stage::flushOutput(llvm::raw_fd_ostream &stream, llvm::StringRef name, DiagnosticEngine &diags) {
  stream.flush();
  if (!stream.has_error())
    return true;
  diags.report(SMLoc(), diag::CannotWriteFile) << name << stream.error().message();
  stream.clear_error();
  return false;
}

bool stage::flushStandardOutput(DiagnosticEngine &diags) { return flushOutput(llvm::outs(), "standard output", diags); }
