//===- LossScale.h - a loss that grows with the batch ----------*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_TRAINING_LOSSSCALE_H
#define STAGE_TRANSFORMS_TRAINING_LOSSSCALE_H

#include "stage/IR/graph/Graph.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Warns of a loss that is a sum over the dim `batch`: a step takes the mean of the losses of its microbatches, so that
/// its gradient then depends on how many sequences a microbatch has. Nothing is said of a loss of which that is not
/// certain. Linear in the ops.
void checkLossScale(Graph &graph, llvm::StringRef batch, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TRANSFORMS_TRAINING_LOSSSCALE_H
