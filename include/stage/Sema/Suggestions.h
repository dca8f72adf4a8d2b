//===- Suggestions.h - notes that say what to write instead ----*- C++ -*-===//
//
// Apart from the messages of Sema, which nearly every file of it includes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_SUGGESTIONS_H
#define STAGE_SEMA_SUGGESTIONS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Sema/Suggestions.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SEMA_SUGGESTIONS_H
