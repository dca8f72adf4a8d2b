//===- RulePrecedence.h - which rules of calls stay ------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_RULEPRECEDENCE_H
#define STAGE_LIB_SEMA_RULEPRECEDENCE_H

#include "stage/Sema/Job.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace stage::sema {

/// The least part of a rule that another one can replace: one `... over ...` of a `shard`, one pattern of a
/// `recompute`, or all of another statement.
struct RulePiece {
  const ast::Pattern *at = nullptr; ///< Of the `at` around; null: none.
  const ast::Stmt *stmt = nullptr;  ///< No AtStmt.
  const ast::ShardStmt::Item *item = nullptr;
  const ast::Pattern *pattern = nullptr; ///< Of a LayerRuleStmt.

  /// Null: the piece has none.
  const ast::AxisListSyntax *getAxes() const;
  /// What it decides, such as "dim 'B'"; nothing: several such pieces add up.
  llvm::SmallVector<std::string, 1> listSubjects() const;
};

/// Visits the pieces of a statement; `at` is the pattern around it.
void forEachPiece(const ast::Stmt &stmt, const ast::Pattern *at, llvm::function_ref<void(const RulePiece &)> visit);

/// Compares rules of different calls, see RulePrecedence.cpp.
class RulePrecedence {
public:
  RulePrecedence(Evaluator &evaluator, const BoundStrategy &strategy) : evaluator(evaluator), strategy(strategy) {}

  /// The statement with those pieces that `keeps` is true of: the same if it is of all, null if it is of none.
  const ast::Stmt *filter(const BoundRule &rule, llvm::function_ref<bool(const RulePiece &)> keeps);
  /// Drops from `rules` what `stronger` ones say, otherwise or again. False if a value could not be evaluated.
  bool replace(std::vector<BoundRule> &rules, ArrayRef<BoundRule> stronger);
  /// Drops from `rules` what `others` say as well, and reports what they say otherwise, which gives false.
  bool merge(ArrayRef<BoundRule> others, std::vector<BoundRule> &rules);

private:
  struct Found {
    const BoundRule *rule;
    RulePiece piece;
  };
  using Subjects = llvm::StringMap<Found>;
  Subjects index(ArrayRef<BoundRule> rules);
  std::optional<std::string> getContent(const BoundRule &rule, const RulePiece &piece);
  std::optional<std::string> getContent(ArrayRef<ast::Stmt *> entries, const Environment &env);
  std::optional<std::string> getContent(const ast::Expr *expr, const Environment &env);
  /// Visits each piece of `rules` that says something of what a piece of `known` is about; the visitor says whether it
  /// stays.
  bool
  compare(std::vector<BoundRule> &rules, const Subjects &known,
          llvm::function_ref<bool(const BoundRule &, const RulePiece &, StringRef subject, const Found &, bool isSame)>
              stays);

  Evaluator &evaluator;
  const BoundStrategy &strategy;
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_RULEPRECEDENCE_H
