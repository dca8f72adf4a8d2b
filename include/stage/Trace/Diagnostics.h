//===- Diagnostics.h - the messages of Trace ----------------------------*- C++ -*-===//
#ifndef STAGE_TRACE_DIAGNOSTICS_H
#define STAGE_TRACE_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Trace/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_TRACE_DIAGNOSTICS_H
