//===- Diagnostics.h - the messages of Driver ---------------------------*- C++ -*-===//
#ifndef STAGE_DRIVER_DIAGNOSTICS_H
#define STAGE_DRIVER_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Driver/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_DRIVER_DIAGNOSTICS_H
