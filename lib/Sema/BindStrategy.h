//===- BindStrategy.h - a strategy with its arguments ----------*- C++ -*-===//
//
// Evaluates a strategy down to the statements in effect: those of the strategies that it
// calls first, `if`s decided, `require`s checked, the mesh with its sizes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_BINDSTRATEGY_H
#define STAGE_LIB_SEMA_BINDSTRATEGY_H

#include "stage/Sema/Job.h"

namespace stage::sema {

/// Sets of axes are 32-bit masks.
constexpr size_t maxAxes = 32;

/// The strategy of a job, with a value for each of its parameters, and the parts that the job adds.
struct StrategyCall {
  const ast::StrategyDecl *decl;
  std::vector<NamedValue> arguments;
  std::vector<bool> isGiven; ///< Of each argument; else it is the default.
  const ast::Expr *expr;     ///< The call; null: it is no call.
  SMRange range;
  ArrayRef<ast::Expr *> parts;
  const ast::File *file; ///< In which the names of the parts mean something.
};
/// Where environments and calls that rules refer to are kept.
struct StrategyScopes {
  std::deque<Environment> &environments;
  std::deque<BoundCall> &calls;
};
std::optional<BoundStrategy> bindStrategy(Evaluator &evaluator, StrategyScopes scopes, const StrategyCall &call);

/// Remarks that parameters which a strategy only forwards to parts are given, with the form that calls the parts.
void remarkForwarded(Evaluator &evaluator, const StrategyCall &call, const std::deque<BoundCall> &calls);

/// The strategies that a file sees.
std::vector<Candidate> listStrategies(const Program &program, const ast::File &from);

/// The strategy that a statement of a strategy's body calls; null: it is no call.
const ast::StrategyDecl *getCalledStrategy(const Program &program, const ast::StrategyDecl &caller,
                                           const ast::Stmt &stmt);

/// The mesh that stands in a strategy's body, also in an `if`. Of several one, if all have the same axes in their first
/// reading. Null: there is none, or which axes there are depends on a condition.
const ast::MeshStmt *getMesh(const ast::StrategyDecl &strategy);

/// Binds a `mesh` in the body of `call`. Its axes are defined in `env`. False after reporting a fault.
bool bindMesh(Evaluator &evaluator, BoundStrategy &strategy, const ast::MeshStmt &mesh, Environment &env,
              const BoundCall &call);

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
