//===- RuleConditions.cpp - which parameter a rule depends on -------------===//
//
// Problem: a rule of the library asks for sizes that a job does not have, and its user does not know that it can be
// turned off:
//
//   strategy megatron(tp = 1, sequence_parallel = true, ...) {
//     if sequence_parallel && tp > 1 {
//       at layers[*].{x, h, y}: shard S over (cp, tp);      'S' = 100 is not divisible by 'tp' = 8
//     }
//
// Algorithm: for each size that does not divide, the rules that split a dim of this name over these axes are looked up,
// and the `if`s around them in their strategy. A parameter that is true or false, and that one of them takes alone or
// beside other conditions (`&&`), decides: with its other value the rule is not there. Nothing is said where a rule
// asks for the same under no such parameter. Of a part also the `if`s around its calls are looked at, and parameters
// that its callers pass on.
//
// Limits: rules that name positions of a shape instead of dims are not looked at.
//
//===----------------------------------------------------------------------===//
#include "RuleConditions.h"
#include "stage/AST/AST.h"
#include "stage/Compiler/Diagnostics.h"
#include "stage/Compiler/Session.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace stage;
using llvm::dyn_cast;

namespace {
/// An `if` around a statement, and which of its branches holds that.
struct Enclosing {
  const ast::IfStmt *stmt;
  bool isThen;
};
/// A parameter, and the call that has it.
struct Decider {
  const sema::BoundCall *call;
  const ast::NameExpr *name;
};
} // namespace

/// The `if`s around a statement of a body, outermost first. False if it is not there.
static bool findEnclosing(llvm::ArrayRef<ast::Stmt *> body, const ast::Stmt *wanted,
                          std::vector<Enclosing> &enclosing) {
  for (const ast::Stmt *stmt : body) {
    if (stmt == wanted)
      return true;
    auto *condition = dyn_cast<ast::IfStmt>(stmt);
    for (bool isThen : {true, false}) {
      if (!condition)
        break;
      enclosing.push_back({condition, isThen});
      if (findEnclosing(isThen ? condition->thenBody : condition->elseBody, wanted, enclosing))
        return true;
      enclosing.pop_back();
    }
  }
  return false;
}

/// Names that must be `value`, or not, for a condition to be `value`: `a && !b` is true only with a, and without b.
static void listDeciders(const ast::Expr *condition, bool value, std::vector<const ast::NameExpr *> &names) {
  if (auto *name = dyn_cast<ast::NameExpr>(condition))
    names.push_back(name);
  if (auto *negated = dyn_cast<ast::UnaryExpr>(condition); negated && negated->op == ast::UnaryOp::Not)
    listDeciders(negated->operand, !value, names);
  auto *both = dyn_cast<ast::BinaryExpr>(condition);
  if (both && both->op == (value ? ast::BinaryOp::And : ast::BinaryOp::Or))
    for (const ast::Expr *operand : {both->left, both->right})
      listDeciders(operand, value, names);
}

/// Whether the sizes of a job pay what is owed.
static bool isPaid(const Obligations::Obligation &owed, Compilation &c) {
  Obligations alone;
  alone.add(owed.kind, owed.left, owed.right, owed.loc, owed.reason);
  DiagnosticEngine quiet(c.session.getSources());
  return alone.check(c.graph->binding, quiet);
}

/// Whether a rule splits the dim that an obligation is about over all axes that it is about.
static bool asksFor(const ast::Stmt *rule, const Obligations::Obligation &owed, const sema::BoundRule &bound,
                    const sema::BoundStrategy &strategy) {
  if (auto *at = dyn_cast<ast::AtStmt>(rule))
    return llvm::any_of(at->rules, [&](const ast::Stmt *inner) { return asksFor(inner, owed, bound, strategy); });
  auto *shard = dyn_cast<ast::ShardStmt>(rule);
  if (!shard)
    return false;
  std::vector<std::string> sizes = collectSymbols(owed.left), parts = collectSymbols(owed.right);
  return llvm::any_of(shard->items, [&](const ast::ShardStmt::Item &item) {
    auto axes = strategy.expand(item.axes, bound.env);
    return llvm::any_of(item.dims, [&](const ast::Ident &dim) { return llvm::is_contained(sizes, dim.name); }) &&
           llvm::all_of(parts, [&](const std::string &axis) { return llvm::is_contained(axes, axis); });
  });
}

/// The parameters, true or false, that a statement of a call depends on: those of the call's strategy, or, where the
/// strategy that calls it passes its own on, those of the caller.
static void listDeciders(const ast::Stmt *stmt, const sema::BoundCall &call, std::vector<Decider> &deciders) {
  std::vector<Enclosing> enclosing;
  std::vector<const ast::NameExpr *> names;
  findEnclosing(call.callee->body, stmt, enclosing);
  for (const Enclosing &around : enclosing)
    listDeciders(around.stmt->condition, around.isThen, names);
  for (const ast::NameExpr *name : names) {
    const ast::NameExpr *own = name;
    const sema::BoundCall *at = &call;
    for (; own && at->caller; at = at->caller) {
      auto *written = llvm::dyn_cast_or_null<ast::CallExpr>(at->expr);
      const ast::NameExpr *passed = nullptr;
      for (const ast::Argument &argument : written ? written->args : llvm::ArrayRef<ast::Argument>())
        if (argument.name && argument.name.name == own->name)
          passed = dyn_cast<ast::NameExpr>(argument.value);
      own = passed;
    }
    bool isParameter =
        own && llvm::any_of(at->callee->params, [&](const ast::Param &param) { return param.name.name == own->name; });
    const sema::CTValue *value = isParameter ? at->env->find(own->name) : nullptr;
    if (value && value->isBool())
      deciders.push_back({at, own});
  }
  if (call.caller && call.stmt)
    listDeciders(call.stmt, *call.caller, deciders);
}

void stage::noteRuleConditions(Compilation &c) {
  const sema::BoundStrategy &strategy = c.job->strategy;
  std::set<llvm::StringRef> noted;
  for (const Obligations::Obligation &owed : c.graph->obligations.all()) {
    if (owed.kind != Obligations::Kind::Divides || isPaid(owed, c))
      continue;
    std::vector<Decider> deciders;
    for (const sema::BoundRule &rule : strategy.rules) {
      if (!asksFor(rule.stmt, owed, rule, strategy))
        continue;
      size_t before = deciders.size();
      listDeciders(rule.stmt, *rule.call, deciders);
      if (deciders.size() == before) { // this rule stays, whatever becomes of others
        deciders.clear();
        break;
      }
    }
    for (auto [call, name] : deciders) {
      bool isTrue = call->env->find(name->name)->getBool();
      if (noted.insert(name->name).second)
        c.diags.report(name->range.Start, diag::RuleHasCondition).range(name->range)
            << name->name << (isTrue ? "true" : "false") << call->callee->name.name << (isTrue ? "false" : "true");
    }
  }
}
