//===- Diagnostics.h - the messages of Serving --------------------------*- C++ -*-===//
#ifndef STAGE_SERVING_DIAGNOSTICS_H
#define STAGE_SERVING_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Serving/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SERVING_DIAGNOSTICS_H
