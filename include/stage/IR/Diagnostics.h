//===- Diagnostics.h - the messages of IR -------------------------------*- C++ -*-===//
#ifndef STAGE_IR_DIAGNOSTICS_H
#define STAGE_IR_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/IR/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_IR_DIAGNOSTICS_H
