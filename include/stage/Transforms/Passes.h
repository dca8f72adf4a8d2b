//===- Passes.h - the passes from graph IR to graph IR ---------*- C++ -*-===//
//
// One function per pass, listed in Passes.def. A pass reports what is wrong through
// the engine; the pass manager stops after a pass with errors.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_PASSES_H
#define STAGE_TRANSFORMS_PASSES_H

#include "stage/Pass/PassManager.h"

namespace stage {

#define PASS(name, function, doc, needs, knowsHost) void function(Graph &graph, DiagnosticEngine &diags);
#include "stage/Transforms/Passes.def"

/// The ranks among which the strategy and the program split a dim of the model's inputs. Of a graph that no pass has
/// seen; leaves it as it is, and reports nothing.
int64_t countRanksThatSplitInputs(Graph &graph, llvm::StringRef dim, DiagnosticEngine &diags);

/// Sets what the gradient of a differentiated graph starts from: the mean over the step's microbatches.
void setGradientSeed(Graph &graph);

/// All of Passes.def, in its order.
llvm::ArrayRef<PassInfo> getAllPasses();

} // namespace stage

#endif // STAGE_TRANSFORMS_PASSES_H
