//===- Diagnostics.h - the messages of Parse ----------------------------*- C++ -*-===//
#ifndef STAGE_PARSE_DIAGNOSTICS_H
#define STAGE_PARSE_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Parse/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_PARSE_DIAGNOSTICS_H
