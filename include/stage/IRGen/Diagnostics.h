//===- Diagnostics.h - the messages of IRGen ----------------------------*- C++ -*-===//
#ifndef STAGE_IRGEN_DIAGNOSTICS_H
#define STAGE_IRGEN_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/IRGen/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_IRGEN_DIAGNOSTICS_H
