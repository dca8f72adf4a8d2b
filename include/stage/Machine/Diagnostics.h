//===- Diagnostics.h - the messages of Machine ---------------------*- C++ -*-===//
#ifndef STAGE_MACHINE_DIAGNOSTICS_H
#define STAGE_MACHINE_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Machine/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_MACHINE_DIAGNOSTICS_H
