//===- Diagnostics.h - the messages of Pass -----------------------------*- C++ -*-===//
#ifndef STAGE_PASS_DIAGNOSTICS_H
#define STAGE_PASS_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Pass/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_PASS_DIAGNOSTICS_H
