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

#define PASS(name, function, doc) void function(Graph &graph, DiagnosticEngine &diags);
#include "stage/Transforms/Passes.def"

/// All of Passes.def, in its order.
llvm::ArrayRef<PassInfo> getAllPasses();

} // namespace stage

#endif // STAGE_TRANSFORMS_PASSES_H
