//===- Diagnostics.h - the messages of Sema -----------------------------*- C++ -*-===//
#ifndef STAGE_SEMA_DIAGNOSTICS_H
#define STAGE_SEMA_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Sema/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SEMA_DIAGNOSTICS_H
