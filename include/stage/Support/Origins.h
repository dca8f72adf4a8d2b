//===- Origins.h - where the value of a message is written -----*- C++ -*-===//
//
// Problem: a rule of the library finds that `tp = 3` does not divide. Who wrote the job
// looks for the 3, and not for the call that has it among others.
//
// Example:
//
//   strategy = megatron(pp = 2, dp = 8, tp = 3);
//                                            ^ and not: ^~~~~~~~ of 'megatron'
//
// A value keeps the place where it is written (sema::CTValue::getOrigin), a context of sizes
// those of numbers of symbols (findOrigin). A message names one of them or several,
// the preferred one first. It is shown at the first one in the user's files, and underlines
// the others of that line. Its own place becomes a note.
//
// Limits: values of the library's own expressions, as of `cp * tp`, are written in the
// library, and show nothing: the message stays where it is.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_ORIGINS_H
#define STAGE_SUPPORT_ORIGINS_H

#include "stage/Support/Diagnostics.h"

namespace stage {

/// `message` is about a value that is written at `origin`; an invalid one says nothing.
void setOrigin(DiagnosticBuilder &message, SMRange origin);

} // namespace stage

#define STAGE_DIAGNOSTICS "stage/Support/Origins.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SUPPORT_ORIGINS_H
