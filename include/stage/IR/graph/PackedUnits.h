//===- PackedUnits.h - what units of several sequences bind ----*- C++ -*-===//
//
//   i2 p1+276@24 1d+1@1000        S = 277, context = 24 + 276 + 1000 + 1, sampled = 2
//                                 twice the pairs under a causal mask: 276^2 + 2*276*24 + 2*(1000 + 1)
//
// Of the sums that the graph has (SequenceSum) a unit binds the symbol to what the sizes come to that are those of each
// of its sequences.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PACKEDUNITS_H
#define STAGE_IR_GRAPH_PACKEDUNITS_H

#include "stage/IR/graph/Graph.h"
#include "stage/Schedule/PackedUnit.h"

namespace stage {

/// What a unit has of all its sequences.
UnitBindings bindPackedUnit(const Graph &graph, const PackedUnit &unit);
/// The sizes of one of the sequences of a unit.
UnitBindings bindSequence(const Graph &graph, const PackedUnit &unit, const SequencePart &part);
/// Binds the units of the graph again, after the values of other sizes have changed, as for a proof. Units are those
/// that it was made with.
void bindPackedUnits(Graph &graph, const ServedUnits &served);

} // namespace stage

#endif // STAGE_IR_GRAPH_PACKEDUNITS_H
