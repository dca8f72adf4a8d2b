//===- Diagnostics.h - the messages of Symbolic -------------------------*- C++ -*-===//
#ifndef STAGE_SYMBOLIC_DIAGNOSTICS_H
#define STAGE_SYMBOLIC_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Symbolic/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SYMBOLIC_DIAGNOSTICS_H
