//===- PartAxes.h - axes that calls give to parts --------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_PARTAXES_H
#define STAGE_LIB_SEMA_PARTAXES_H

#include "stage/Sema/Job.h"

namespace stage::sema {

/// What names of axes mean in a strategy that is being bound, see PartAxes.cpp.
class PartAxes {
public:
  PartAxes(Evaluator &evaluator, const BoundStrategy &strategy) : evaluator(evaluator), strategy(strategy) {}

  /// The call whose body has a name for several axes. That of the mesh is the strategy's `meshCall`.
  void addAlias(StringRef name, const BoundCall &call) { aliasOwners[name] = &call; }

  /// Whether the mesh stands in the body of a call or in one that it calls.
  bool seesMesh(const BoundCall &in) const;
  /// An argument for a parameter of the kind `axes`, in the body of the call `from`.
  std::optional<CTValue> evaluate(const ast::Expr *expr, const Environment &env, const BoundCall &from);
  std::optional<CTValue> evaluate(const ast::AxisListSyntax &names, const Environment &env, const BoundCall &from);
  /// The default value of such a parameter of `call`, which `from` leaves out. `env` has the parameters before it.
  std::optional<CTValue> evaluateDefault(const ast::Param &param, const Environment &env, const BoundCall &from,
                                         const BoundCall &call);
  /// Whether all names in a rule of the call `in` are axes there, none of them twice; else they are reported.
  bool check(const ast::AxisListSyntax &axes, const Environment &env, const BoundCall &in);

private:
  bool isKnown(StringRef name, const BoundCall &in) const;
  std::optional<CTValue> evaluateName(const ast::Ident &name, const Environment &env, const BoundCall &from);
  /// Several in a row; nothing after reporting at `range` that one stands twice.
  std::optional<CTValue> join(ArrayRef<CTValue> parts, SMRange range);
  CTValue makeAxes(StringRef name) const;
  void reportUnknown(const ast::Ident &name, const Environment &env, const BoundCall &in);
  std::string listMeshAxes() const;

  Evaluator &evaluator;
  const BoundStrategy &strategy;
  llvm::DenseMap<StringRef, const BoundCall *> aliasOwners;
  bool saysMeshIsMissing = false; ///< Its absence was reported.
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_PARTAXES_H
