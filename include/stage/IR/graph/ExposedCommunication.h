//===- ExposedCommunication.h - messages that nothing hides -----*- C++ -*-===//
//
// `overlap communication tp with nothing` in a strategy: software waits for what these ranks send each other before it
// computes anything. Within a unit compute is put behind it (expose-communication); of two units that run interleaved
// the other one does not run meanwhile (stage/Walk/PairOrder.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_EXPOSEDCOMMUNICATION_H
#define STAGE_IR_GRAPH_EXPOSEDCOMMUNICATION_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Rule.h"

namespace stage {

/// Whether an op communicates along axes of a rule, and along no others. What has a stream of its own stays beside
/// compute.
bool isExposedBy(const Graph &graph, const Op &op, const Rule &rule);
/// The same of some rule of the graph.
bool isExposed(const Graph &graph, const Op &op);

} // namespace stage

#endif // STAGE_IR_GRAPH_EXPOSEDCOMMUNICATION_H
