//===- Suggestions.h - notes that say what to write instead ----*- C++ -*-===//
//
// Apart from the messages of IRGen, which nearly every file of it includes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IRGEN_SUGGESTIONS_H
#define STAGE_IRGEN_SUGGESTIONS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/IRGen/Suggestions.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_IRGEN_SUGGESTIONS_H
