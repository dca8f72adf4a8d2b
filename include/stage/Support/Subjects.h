//===- Subjects.h - the value that a message is about ----------*- C++ -*-===//
//
// Problem: a rule of the library finds that `tp = 3` does not divide. Who wrote the job
// looks for the 3, and not for the call that has it among others.
//
// Example:
//
//   strategy = megatron(pp = 2, dp = 8, tp = 3);
//                                            ^ and not: ^~~~~~~~ of 'megatron'
//
// A message names its value, or several in the order of preference. It is shown where
// the job around the user's place gives the first of them: as an argument, or as an
// entry of a config that it names. Where none is given, or another value, the message
// stays where it is. It also stays where a strategy of the file calls another one with
// `tp = dp`, because the text does not tell which argument has come to the rule.
//
// Limits: the text is searched, and names are compared. A value that comes to a rule
// under another name has no place.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_SUBJECTS_H
#define STAGE_SUPPORT_SUBJECTS_H

#include "stage/Support/Diagnostics.h"

namespace stage {

/// `message` is about the value `value` of `name`. An empty name is that of any argument of an argument, as `v = 3` of
/// `schedule = interleaved(v = 3)`.
void setSubject(DiagnosticBuilder &message, llvm::StringRef name, llvm::StringRef value);

/// Where the job around `place` gives this value to `name`; invalid: it does not.
SMRange findGiven(llvm::StringRef text, SMLoc place, llvm::StringRef name, llvm::StringRef value);

} // namespace stage

#define STAGE_DIAGNOSTICS "stage/Support/Subjects.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SUPPORT_SUBJECTS_H
