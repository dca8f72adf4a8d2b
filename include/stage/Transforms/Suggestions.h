//===- Suggestions.h - notes that say what to write instead ----*- C++ -*-===//
//
// Apart from the messages of Transforms, which nearly every file of it includes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_SUGGESTIONS_H
#define STAGE_TRANSFORMS_SUGGESTIONS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Transforms/Suggestions.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_TRANSFORMS_SUGGESTIONS_H
