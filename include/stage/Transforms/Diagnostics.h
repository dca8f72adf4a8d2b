//===- Diagnostics.h - the messages of Transforms -----------------------*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_DIAGNOSTICS_H
#define STAGE_TRANSFORMS_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Transforms/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_TRANSFORMS_DIAGNOSTICS_H
