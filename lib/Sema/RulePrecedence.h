//===- RulePrecedence.h - which rules of calls stay ------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_RULEPRECEDENCE_H
#define STAGE_LIB_SEMA_RULEPRECEDENCE_H

#include "stage/Sema/Job.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

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

/// Null: the statement is none.
const ast::LayerRuleStmt *getLayerRule(const ast::Stmt *stmt);

/// Visits the pieces of a statement; `at` is the pattern around it.
void forEachPiece(const ast::Stmt &stmt, const ast::Pattern *at, llvm::function_ref<void(const RulePiece &)> visit);

/// Compares rules of different calls, see RulePrecedence.cpp.
class RulePrecedence {
public:
  RulePrecedence(Evaluator &evaluator, const BoundStrategy &strategy) : evaluator(evaluator), strategy(strategy) {}

  /// Leaves those pieces of a rule that `keeps` is true of; false if there are none.
  bool filter(BoundRule &rule, llvm::function_ref<bool(const RulePiece &)> keeps);
  /// Drops from `rules` what `stronger` ones say, otherwise or again. With `warnsOfLost` entries that the stronger ones
  /// leave out are warned of, and so are stronger ones that say nothing new. False if a value could not be evaluated.
  bool replace(std::vector<BoundRule> &rules, ArrayRef<BoundRule> stronger, bool warnsOfLost = false);
  /// Drops from `others` what `rules` say as well, and reports what they say otherwise, which gives false.
  bool merge(std::vector<BoundRule> &others, ArrayRef<BoundRule> rules);

private:
  /// What the rules of one list say of one subject.
  struct Decision {
    llvm::SmallVector<std::pair<const BoundRule *, RulePiece>, 1> pieces;
    // Once it is read.
    std::string content;
    std::vector<std::string> entries; ///< `bucket = 25MiB`

    const BoundRule &getRule() const { return *pieces.front().first; }
    const RulePiece &getPiece() const { return pieces.front().second; }
  };
  using Decisions = std::map<std::string, Decision>;
  static Decisions decide(ArrayRef<BoundRule> rules);
  /// False if a value could not be evaluated.
  bool read(Decision &decision);
  /// Drops what the rules say of these subjects.
  void drop(std::vector<BoundRule> &rules, const llvm::StringSet<> &subjects);
  bool addContent(const BoundRule &rule, const RulePiece &piece, Decision &decision);
  std::optional<std::string> getContent(const ast::Expr *expr, const Environment &env);
  std::string format(const CTValue &value);
  bool addEntries(ArrayRef<ast::Stmt *> entries, const Environment &env, Decision &decision);

  Evaluator &evaluator;
  const BoundStrategy &strategy;
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_RULEPRECEDENCE_H
