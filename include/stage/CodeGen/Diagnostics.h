//===- Diagnostics.h - the messages of CodeGen --------------------------*- C++ -*-===//
#ifndef STAGE_CODEGEN_DIAGNOSTICS_H
#define STAGE_CODEGEN_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/CodeGen/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_CODEGEN_DIAGNOSTICS_H
