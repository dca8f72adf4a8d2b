//===- Diagnostics.h - the messages of Report ---------------------------*- C++ -*-===//
#ifndef STAGE_REPORT_DIAGNOSTICS_H
#define STAGE_REPORT_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Report/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_REPORT_DIAGNOSTICS_H
