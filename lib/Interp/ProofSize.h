//===- ProofSize.h - is a proof small enough to run? -----------*- C++ -*-===//
#ifndef STAGE_LIB_INTERP_PROOFSIZE_H
#define STAGE_LIB_INTERP_PROOFSIZE_H

#include "stage/IR/graph/Program.h"
#include "stage/Schedule/PackedUnit.h"

namespace stage::interp {

/// More products than these take minutes.
constexpr double mostProducts = 2e8;
/// How many products a proof of a graph, at the sizes that it is bound to, computes on one device.
double countProducts(Graph &graph);

/// Element by element a proof is slow: what would take minutes is refused, and reported. So are units of several
/// sequences of which nobody knows which (`served`).
bool checkProofSize(Graph &graph, const Program *program, DiagnosticEngine &diags, const ServedUnits *served = nullptr);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_PROOFSIZE_H
