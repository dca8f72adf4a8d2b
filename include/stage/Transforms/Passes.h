//===- Passes.h - the passes from graph IR to graph IR ---------*- C++ -*-===//
//
// One function per pass, in the order of the pipeline. A pass reports what is wrong
// through the engine; the pass manager stops after a pass with errors.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_PASSES_H
#define STAGE_TRANSFORMS_PASSES_H

#include "stage/IR/Graph.h"

namespace stage {

/// Makes the backward and step blocks (L3).
void differentiate(Graph &graph, DiagnosticEngine &diags);
/// Turns the strategy's rules into constraints of values and ops.
void applyStrategy(Graph &graph, DiagnosticEngine &diags);
/// Gives every value its sharding and every op the axes of its indices (L4, L5).
void propagateSharding(Graph &graph, DiagnosticEngine &diags);
/// Makes every reshard an op, shares it and decides what is kept for backward (L6).
void insertCommunication(Graph &graph, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TRANSFORMS_PASSES_H
