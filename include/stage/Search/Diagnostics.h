//===- Diagnostics.h - the messages of Search ------------------*- C++ -*-===//
#ifndef STAGE_SEARCH_DIAGNOSTICS_H
#define STAGE_SEARCH_DIAGNOSTICS_H

#include "stage/Support/Diagnostics.h"

#define STAGE_DIAGNOSTICS "stage/Search/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

#endif // STAGE_SEARCH_DIAGNOSTICS_H
