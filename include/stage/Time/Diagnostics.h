//===- Diagnostics.h - the messages of Time ---------------------*- C++ -*-===//
#ifndef STAGE_TIME_DIAGNOSTICS_H
#define STAGE_TIME_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Time/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_TIME_DIAGNOSTICS_H
