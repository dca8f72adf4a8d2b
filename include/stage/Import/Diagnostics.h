//===- Diagnostics.h - the messages of Import ---------------------------*- C++ -*-===//
#ifndef STAGE_IMPORT_DIAGNOSTICS_H
#define STAGE_IMPORT_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Import/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_IMPORT_DIAGNOSTICS_H
