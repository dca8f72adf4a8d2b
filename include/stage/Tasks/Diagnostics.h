//===- Diagnostics.h - the messages of Tasks --------------------------*- C++ -*-===//
#ifndef STAGE_TASKS_DIAGNOSTICS_H
#define STAGE_TASKS_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Tasks/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_TASKS_DIAGNOSTICS_H
