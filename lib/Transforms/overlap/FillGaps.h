//===- FillGaps.h - the order of a run of ops (idea E8) --------*- C++ -*-===//
//
// The rules by which order-operations orders ops of backward that stand one behind the
// other. See FillGaps.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_FILLGAPS_H
#define STAGE_LIB_TRANSFORMS_FILLGAPS_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

/// FLOPs and bytes as numbers: they stand for time where compute and communication are weighed against each other.
class OpWeights {
public:
  using Amount = __int128;

  /// Requires: checkSizes() holds.
  explicit OpWeights(const Graph &graph);

  /// FLOPs of an op, those recomputed included; 0 where it has no node. Ranks with different work count as the first.
  Amount getWork(const Op &op) const;
  /// Bytes that pass a rank in a collective of a large group.
  Amount getTraffic(const Op &collective) const;
  /// Bytes that a virtual stage sends on after its iterations of a pipelined repeat, per iteration; 0 for the yield of
  /// another repeat, and where messages do not leave early: they wait for all of the unit, whatever its order.
  Amount getSent(const Op &yield) const;

private:
  Amount evaluateFloor(Size size) const;
  const Graph &graph;
  SizeBinding binding;
  llvm::DenseSet<unsigned> pipelinedLoops;
  Amount numPipelined = 0; ///< Iterations of all pipelined repeats.
};

/// The order in which ops of backward that stand one behind the other should run; empty if they are to stay as they
/// are. `end` is the yield or repeat behind them, null if there is none.
std::vector<Op *> fillGaps(llvm::ArrayRef<Op *> ops, Op *end, const OpWeights &weights);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_FILLGAPS_H
