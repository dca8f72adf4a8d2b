//===- Diagnostics.h - the messages of AstraSim ------------------*- C++ -*-===//
#ifndef STAGE_ASTRASIM_DIAGNOSTICS_H
#define STAGE_ASTRASIM_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/AstraSim/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_ASTRASIM_DIAGNOSTICS_H
