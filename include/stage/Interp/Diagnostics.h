//===- Diagnostics.h - the messages of Interp ---------------------------*- C++ -*-===//
#ifndef STAGE_INTERP_DIAGNOSTICS_H
#define STAGE_INTERP_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Interp/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_INTERP_DIAGNOSTICS_H
