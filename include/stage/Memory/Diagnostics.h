//===- Diagnostics.h - the messages of Memory ---------------------------*- C++ -*-===//
#ifndef STAGE_MEMORY_DIAGNOSTICS_H
#define STAGE_MEMORY_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Memory/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_MEMORY_DIAGNOSTICS_H
