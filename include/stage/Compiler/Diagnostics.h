//===- Diagnostics.h - the messages of Compiler ----------------*- C++ -*-===//
#ifndef STAGE_COMPILER_DIAGNOSTICS_H
#define STAGE_COMPILER_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Compiler/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_COMPILER_DIAGNOSTICS_H
