//===- IRGen.h - from a bound job to graph IR ------------------*- C++ -*-===//
//
// The last phase that knows the syntax tree: elaborates the job's model into the
// forward block of a graph, with shapes checked, and writes the strategy, precision,
// optimizer and schedule into the graph as data. Nothing below needs the tree.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IRGEN_IRGEN_H
#define STAGE_IRGEN_IRGEN_H

#include "stage/IRGen/ModelCache.h"

namespace stage {

/// Null after errors; all faults that do not follow from others are reported. `binding` and `obligations` are those
/// that the job was bound with; the graph takes copies. With `models`, a model that was made before is not made again,
/// and the graph may have its backward already.
std::unique_ptr<Graph> generateGraph(const sema::Program &program, const sema::BoundJob &job, SizeContext &sizes,
                                     const SizeBinding &binding, const Obligations &obligations,
                                     DiagnosticEngine &diags, ModelCache *models = nullptr);

} // namespace stage

#endif // STAGE_IRGEN_IRGEN_H
