//===- Verifier.h - what every graph must satisfy --------------*- C++ -*-===//
#ifndef STAGE_IR_VERIFY_VERIFIER_H
#define STAGE_IR_VERIFY_VERIFIER_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Checks the rules V1 to V12 of docs/internals/IRRef.md, and reports each violation there. True if there is none.
/// Cheap enough to run after every pass. What is not decided yet (a sharding before propagate-sharding) is not checked.
bool verify(Graph &graph, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_IR_VERIFY_VERIFIER_H
