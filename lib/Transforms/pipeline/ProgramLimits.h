//===- ProgramLimits.h - what is too large to compile ----------*- C++ -*-===//
//
// Problem: a slip of the keyboard (`-D L=1000000000`) must end in a message, not in a
// full memory. Most phases do not care how large a program is; what does grow with it:
//
//   units of a schedule         microbatches, twice per stage and chunk
//   operations of the templates each is simulated for its memory, iteration by iteration
//   classes times operations    each class of ranks is lowered apart
//
// The limits are far beyond machines and models of today, and within seconds.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_PROGRAMLIMITS_H
#define STAGE_LIB_TRANSFORMS_PROGRAMLIMITS_H

#include "stage/IR/graph/Program.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Before the units are listed. False after a report.
bool checkNumUnits(const Graph &graph, unsigned numVirtualStages, unsigned numPhases, DiagnosticEngine &diags);
/// Once the templates are there. False after a report.
bool checkNumOperations(const Program &program, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_PROGRAMLIMITS_H
