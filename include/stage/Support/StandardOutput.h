//===- StandardOutput.h - the end of what a command prints -----*- C++ -*-===//
#ifndef STAGE_SUPPORT_STANDARDOUTPUT_H
#define STAGE_SUPPORT_STANDARDOUTPUT_H

#include "stage/Support/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

namespace stage {

/// Writes out what a stream still holds. False after a report: the disk is full, a pipe is closed. Without this the
/// stream would abort the program when it is destroyed. `name` is what messages call it.
bool flushOutput(llvm::raw_fd_ostream &stream, llvm::StringRef name, DiagnosticEngine &diags);

/// The same for standard output.
bool flushStandardOutput(DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_SUPPORT_STANDARDOUTPUT_H
