//===- Diagnostics.h - the messages of Schedule -------------------------*- C++ -*-===//
#ifndef STAGE_SCHEDULE_DIAGNOSTICS_H
#define STAGE_SCHEDULE_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Schedule/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SCHEDULE_DIAGNOSTICS_H
