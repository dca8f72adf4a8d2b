//===- BindStrategy.h - a strategy with its arguments ----------*- C++ -*-===//
//
// Evaluates a strategy down to the statements in effect: those of the strategies it
// extends first, `if`s decided, `require`s checked, the mesh with its sizes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_BINDSTRATEGY_H
#define STAGE_LIB_SEMA_BINDSTRATEGY_H

#include "stage/Sema/Job.h"

namespace stage::sema {

/// Sets of axes are 32-bit masks.
constexpr size_t maxAxes = 32;

/// Binds `decl` to evaluated arguments given at `usedAt`. Environments are added to `environments`.
std::optional<BoundStrategy> bindStrategy(Evaluator &evaluator, std::deque<Environment> &environments,
                                          const ast::StrategyDecl &decl, ArrayRef<NamedValue> args, SMRange usedAt);

/// Makes the mesh of a strategy of what its readings so far and a second one have in common, with a name for each axis
/// that is several of its atoms. False after reporting at `range` why there is no such mesh.
bool refineMesh(BoundStrategy &strategy, ArrayRef<BoundAxis> second, SMRange range, SizeContext &sizes,
                DiagnosticEngine &diags);

/// Makes two of each axis of which the first dim of a rule for several, as `shard (KV, G) over tp`, takes a part and
/// not all, by the values of the model's parameters.
void splitSharedAxes(BoundStrategy &strategy, ArrayRef<NamedValue> modelArgs, const SizeBinding &binding,
                     SizeContext &sizes);

/// Evaluates what the pipeline statement in effect says, if there is one, for a number of microbatches. False after
/// reporting a fault.
/// Inference runs no schedule: it is one way up, batch by batch.
bool bindPipeline(Evaluator &evaluator, BoundStrategy &strategy, int64_t microbatches, bool isTraining);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_BINDSTRATEGY_H
