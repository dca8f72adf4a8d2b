//===- BindStrategy.cpp - a strategy with its arguments -------------------===//
//
// Problem: a strategy is made of calls of others, down to parts that have one rule each. Below Sema there is one list
// of rules, and each must be about the axes that its call gives it.
//
//   strategy s(tp) { mesh (tp); overlapped(axes = tp); shard B over tp; }
//   strategy overlapped(axes: axes) { overlap communication axes with compute; }
//
//   rules of s(tp = 8):   overlap communication axes with compute   in overlapped(axes = tp), where axes is tp
//                         shard B over tp                           in s(tp = 8)
//
// Algorithm: a call is bound in four steps.
//   1. The body: `if`s are decided, the mesh gets its sizes, rules and calls are listed.
//   2. Calls that have the mesh, if the body has none; then names of axes; then the other calls, whose arguments may be
//      these axes.
//   3. What two calls say of one thing must be the same; what the body says itself replaces it (RulePrecedence).
//   4. Rules of the calls come first, in order, and those of the body behind them.
// Parts that a job adds are bound like calls of its strategy, and what they say replaces what is to their left.
//
// Limits: a rule that names other places than another one, of which some are the same, is seen by apply-strategy only.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "PartAxes.h"
#include "RulePrecedence.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

int64_t BoundStrategy::getNumRanks() const {
  int64_t ranks = 1;
  for (const BoundAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

int64_t BoundStrategy::getNumStages() const {
  for (const BoundRule &rule : rules)
    if (auto *pipeline = llvm::dyn_cast<ast::PipelineStmt>(rule.stmt))
      for (StringRef axis : expand(pipeline->axes, rule.env))
        return findAxis(axis)->size;
  return 1;
}

const BoundAxis *BoundStrategy::findAxis(StringRef name) const {
  auto found = llvm::find_if(mesh, [&](const BoundAxis &axis) { return axis.name.name == name; });
  return found == mesh.end() ? nullptr : &*found;
}

const ast::StrategyDecl *stage::sema::getCalledStrategy(const Program &program, const ast::StrategyDecl &caller,
                                                        const ast::Stmt &stmt) {
  auto *statement = dyn_cast<ast::ExprStmt>(&stmt);
  auto *call = statement ? dyn_cast<ast::CallExpr>(statement->value) : nullptr;
  auto *name = call ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  return name ? llvm::dyn_cast_or_null<ast::StrategyDecl>(program.lookup(program.getFile(caller), name->name))
              : nullptr;
}

static void listMeshes(ArrayRef<ast::Stmt *> stmts, std::vector<const ast::MeshStmt *> &meshes) {
  for (const ast::Stmt *stmt : stmts)
    if (auto *mesh = dyn_cast<ast::MeshStmt>(stmt)) {
      meshes.push_back(mesh);
    } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
      listMeshes(choice->thenBody, meshes);
      listMeshes(choice->elseBody, meshes);
    }
}

const ast::MeshStmt *stage::sema::getMesh(const ast::StrategyDecl &strategy) {
  std::vector<const ast::MeshStmt *> meshes;
  listMeshes(strategy.body, meshes);
  auto isSame = [&](const ast::MeshStmt *mesh) {
    return mesh == meshes.front() ||
           std::equal(mesh->axes.begin(), mesh->axes.end(), meshes.front()->axes.begin(), meshes.front()->axes.end(),
                      [](const ast::MeshStmt::AxisSyntax &a, const ast::MeshStmt::AxisSyntax &b) {
                        return a.name.name == b.name.name && !a.size && !b.size;
                      });
  };
  return !meshes.empty() && llvm::all_of(meshes, isSame) ? meshes.front() : nullptr;
}

std::vector<Candidate> stage::sema::listStrategies(const Program &program, const ast::File &from) {
  std::vector<Candidate> candidates = program.getVisibleNames(from);
  llvm::erase_if(candidates, [&](const Candidate &candidate) {
    return !llvm::isa_and_nonnull<ast::StrategyDecl>(program.lookup(from, candidate.name));
  });
  return candidates;
}

static ArrayRef<ast::Argument> getArguments(const ast::Expr *call) {
  auto *node = dyn_cast<ast::CallExpr>(call);
  return node ? node->args : ArrayRef<ast::Argument>();
}

/// Gives `again` the arguments of a call anew.
static bool evaluateArguments(Evaluator &evaluator, const BoundCall &call, Environment &again) {
  Environment caller(call.callerEnv->getFile());
  const ast::StrategyDecl &decl = *call.callee;
  auto matched = matchArguments(decl.params, getArguments(call.expr), decl.name.name, call.range, evaluator.getDiags());
  if (!matched)
    return false;
  if (call.caller && !evaluateAgain(evaluator, *call.caller, *call.callerEnv, caller))
    return false;
  if (!call.caller) // a part of the job, which names parameters of its strategy
    for (const auto &[name, value] : call.callerEnv->getOwn())
      caller.define(name, value);
  for (size_t i = 0; i != decl.params.size(); ++i) {
    if (decl.params[i].scalarKind.name == axesKind)
      continue;
    std::optional<CTValue> value = evaluator.evaluateParam(decl.params[i], (*matched)[i], again, caller);
    if (!value)
      return false;
    again.define(decl.params[i].name.name, std::move(*value));
  }
  return true;
}

bool stage::sema::evaluateAgain(Evaluator &evaluator, const BoundCall &call, const Environment &env,
                                Environment &again) {
  llvm::SmallVector<const Environment *, 4> scopes;
  for (const Environment *scope = &env; scope; scope = scope->getParent())
    scopes.push_back(scope);
  for (const Environment *scope : llvm::reverse(scopes))
    for (const auto &[name, value] : scope->getOwn())
      again.define(name, value);
  if (call.callerEnv && !evaluateArguments(evaluator, call, again))
    return false;
  for (auto [scope, let] : call.lets) {
    if (!llvm::is_contained(scopes, scope))
      continue;
    std::optional<CTValue> value = evaluator.evaluate(let->value, again);
    if (!value)
      return false;
    again.define(let->targets[0].name, std::move(*value));
  }
  return true;
}

namespace {
class StrategyBinder {
public:
  StrategyBinder(Evaluator &evaluator, StrategyScopes &scopes)
      : evaluator(evaluator), diags(evaluator.getDiags()), scopes(scopes), axes(evaluator, result),
        precedence(evaluator, result) {}

  void bind(const StrategyCall &call);
  BoundStrategy result;
  bool ok = true;

private:
  /// A call that is in effect, with the conditions under which it stands.
  struct PendingCall {
    const ast::Expr *expr;
    const ast::Stmt *stmt;
    const ast::StrategyDecl *callee;
    Environment *env;
    llvm::SmallVector<StringRef, 0> asked;
  };
  /// What a body says itself.
  struct Body {
    BoundCall &call;
    std::vector<BoundRule> rules;
    std::vector<PendingCall> calls;
    std::vector<std::pair<const ast::AxisAliasStmt *, Environment *>> aliases;
    bool asksJob = false; ///< A condition about the model or the phase was false: its rules are of other jobs.
  };
  using Rules = std::vector<BoundRule>;

  Rules bindCall(const PendingCall &pending, BoundCall call, const BoundCall *from, bool &asksJob);
  Rules bindBody(BoundCall &call, Environment &env, llvm::SmallVector<StringRef, 0> askedBefore, bool &asksJob);
  Rules bindCalls(Body &body);
  bool bindParams(const PendingCall &pending, const BoundCall &call, const BoundCall *from, Environment &env);
  void addPart(const ast::Expr *expr, const StrategyCall &job, unsigned number);
  void visitStmts(ArrayRef<ast::Stmt *> stmts, Environment &env, Body &body);
  void visitStmt(const ast::Stmt *stmt, Environment &env, Body &body);
  void visitIf(const ast::IfStmt &choice, Environment &env, Body &body);
  void addRule(const ast::Stmt *stmt, const Environment &env, Body &body);
  void warnNoRule(const PendingCall &pending, const Environment &env);
  bool hasMesh(const ast::StrategyDecl &decl);
  bool findMesh(ArrayRef<ast::Stmt *> stmts, const ast::StrategyDecl &decl);
  bool bindAlias(const ast::AxisAliasStmt &alias, const BoundCall &call, Environment &env);
  bool checkRule(const BoundRule &rule, const ast::Stmt *stmt);

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  StrategyScopes &scopes;
  PartAxes axes;
  RulePrecedence precedence;
  llvm::SmallVector<StringRef, 4> asked; ///< In the conditions around.
  llvm::DenseMap<const ast::StrategyDecl *, bool> meshes;
  bool meshIsBound = false; ///< Without a fault.
  bool tooManyCalls = false;
  bool failsRequirement = false;
};
} // namespace

/// Each call may call others twice, and so on.
constexpr size_t maxCalls = 4096;

void StrategyBinder::bind(const StrategyCall &call) {
  Environment &env = scopes.environments.emplace_back(evaluator.getProgram().getFile(*call.decl));
  for (const NamedValue &argument : call.arguments)
    env.define(argument.name.name, argument.value);
  BoundCall &root = scopes.calls.emplace_back();
  root.callee = call.decl;
  root.expr = call.expr;
  root.range = call.range;
  root.env = &env;
  result.call = &root;
  bool asksJob = false;
  result.rules = bindBody(root, env, {}, asksJob);
  for (unsigned number = 0; ok && number < call.parts.size(); ++number)
    addPart(call.parts[number], call, number);
  // Without its mesh no rule has an axis.
  if (ok || meshIsBound)
    for (const BoundRule &rule : result.rules)
      ok &= checkRule(rule, rule.stmt);
}

/// The parts that a strategy calls itself, which may be added to another one.
static std::vector<std::string> listCalledParts(const Program &program, const ast::StrategyDecl &strategy) {
  std::vector<std::string> parts;
  for (const ast::Stmt *stmt : strategy.body)
    if (const ast::StrategyDecl *part = getCalledStrategy(program, strategy, *stmt))
      if (std::string name = part->name.name.str(); !llvm::is_contained(parts, name))
        parts.push_back(name);
  return parts;
}

/// `with recompute_full()`: bound as if the job's strategy called it, whose parameters and axes it may be given.
void StrategyBinder::addPart(const ast::Expr *expr, const StrategyCall &job, unsigned number) {
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : expr);
  const ast::Decl *decl = name ? evaluator.getProgram().lookup(*job.file, name->name) : nullptr;
  auto *callee = llvm::dyn_cast_or_null<ast::StrategyDecl>(decl);
  if (!callee) {
    DiagnosticBuilder error = diags.report(expr->loc(), diag::PartExpected).range(expr->range) << textOf(expr);
    if (name && !decl && !evaluator.getProgram().suggestImport(error, name->name))
      suggestNearest(error, name->name, name->range, listStrategies(evaluator.getProgram(), *job.file));
    ok = false;
    return;
  }
  if (hasMesh(*callee)) {
    DiagnosticBuilder error = diags.report(expr->loc(), diag::PartWithMesh).range(expr->range) << callee->name.name;
    error.note(callee->name.loc(), diag::PreviousHere) << callee->name.name;
    std::vector<std::string> parts = listCalledParts(evaluator.getProgram(), *callee);
    if (!parts.empty())
      error.note(SMLoc(), diag::PartsOfStrategy) << callee->name.name << llvm::join(parts, ", ");
    ok = false;
    return;
  }
  Environment &env = scopes.environments.emplace_back(*job.file);
  for (const auto &[param, value] : result.call->env->getOwn())
    env.define(param, value);
  BoundCall bound;
  bound.addition = number + 1;
  bool asksJob = false;
  Rules added = bindCall({expr, nullptr, callee, &env, {}}, bound, result.call, asksJob);
  if (!ok)
    return;
  ok &= precedence.replace(result.rules, added, /*warnsOfLost=*/true);
  result.rules.insert(result.rules.end(), added.begin(), added.end());
}

StrategyBinder::Rules StrategyBinder::bindCall(const PendingCall &pending, BoundCall call, const BoundCall *from,
                                               bool &asksJob) {
  if (scopes.calls.size() >= maxCalls) {
    if (!std::exchange(tooManyCalls, true))
      diags.report(pending.expr->loc(), diag::TooManyCalls).range(pending.expr->range) << maxCalls;
    ok = false;
    return {};
  }
  Environment &env = scopes.environments.emplace_back(evaluator.getProgram().getFile(*pending.callee));
  call.callee = pending.callee;
  call.expr = pending.expr;
  call.range = pending.expr->range;
  call.env = &env;
  call.callerEnv = pending.env;
  call.stmt = pending.stmt;
  BoundCall &kept = scopes.calls.emplace_back(call);
  if (!bindParams(pending, kept, from, env)) {
    ok = false;
    return {};
  }
  bool asks = false;
  unsigned errorsBefore = diags.getNumErrors();
  Rules rules = bindBody(kept, env, pending.asked, asks);
  if (rules.empty() && !asks && diags.getNumErrors() == errorsBefore && !hasMesh(*pending.callee))
    warnNoRule(pending, env);
  asksJob |= asks;
  return rules;
}

bool StrategyBinder::bindParams(const PendingCall &pending, const BoundCall &call, const BoundCall *from,
                                Environment &env) {
  const ast::StrategyDecl &decl = *pending.callee;
  auto matched = matchArguments(decl.params, getArguments(pending.expr), decl.name.name, pending.expr->range, diags,
                                &evaluator.getProgram());
  if (!matched)
    return false;
  for (size_t i = 0; i != decl.params.size(); ++i) {
    const ast::Param &param = decl.params[i];
    const ast::Argument *given = (*matched)[i];
    std::optional<CTValue> value;
    if (param.scalarKind.name != axesKind)
      value = evaluator.evaluateParam(param, given, env, *pending.env);
    else if (given)
      value = axes.evaluate(given->value, *pending.env, *from);
    else
      value = axes.evaluateDefault(param, env, *from, call);
    if (!value)
      return false;
    env.define(param.name.name, std::move(*value));
  }
  return true;
}

/// With all arguments left to their defaults a part may say nothing: `offload_to_host()` of a strategy that passes on
/// what it was given itself.
void StrategyBinder::warnNoRule(const PendingCall &pending, const Environment &env) {
  auto matched = matchArguments(pending.callee->params, getArguments(pending.expr), pending.callee->name.name,
                                pending.expr->range, diags);
  bool differs = false;
  for (size_t i = 0; matched && i != pending.callee->params.size(); ++i) {
    const ast::Param &param = pending.callee->params[i];
    if (!(*matched)[i])
      continue;
    if (param.scalarKind.name == axesKind) { // a strategy passes on what its parts may need
      differs |= pending.stmt == nullptr;
      continue;
    }
    std::optional<CTValue> usual =
        param.defaultValue ? evaluator.evaluateParam(param, nullptr, env, env) : std::nullopt;
    differs |= !usual || !evaluator.isSame(*usual, *env.find(param.name.name));
  }
  if (differs)
    diags.report(pending.expr->loc(), diag::PartWithoutRule).range(pending.expr->range) << textOf(pending.expr);
}

/// Whether a mesh stands in a strategy or in one that it calls, whatever the conditions.
bool StrategyBinder::hasMesh(const ast::StrategyDecl &decl) {
  auto known = meshes.find(&decl);
  if (known != meshes.end())
    return known->second;
  bool found = findMesh(decl.body, decl);
  meshes[&decl] = found;
  return found;
}

bool StrategyBinder::findMesh(ArrayRef<ast::Stmt *> stmts, const ast::StrategyDecl &decl) {
  const Program &program = evaluator.getProgram();
  return llvm::any_of(stmts, [&](const ast::Stmt *stmt) {
    if (auto *choice = dyn_cast<ast::IfStmt>(stmt))
      return findMesh(choice->thenBody, decl) || findMesh(choice->elseBody, decl);
    const ast::StrategyDecl *callee = getCalledStrategy(program, decl, *stmt);
    return llvm::isa<ast::MeshStmt>(stmt) || (callee && hasMesh(*callee));
  });
}

StrategyBinder::Rules StrategyBinder::bindBody(BoundCall &call, Environment &env,
                                               llvm::SmallVector<StringRef, 0> askedBefore, bool &asksJob) {
  Body body{call, {}, {}, {}};
  llvm::SmallVector<StringRef, 4> outside = std::exchange(asked, {askedBefore.begin(), askedBefore.end()});
  bool outer = std::exchange(ok, true);
  visitStmts(call.callee->body, env, body);
  Rules rules = bindCalls(body);
  ok &= outer;
  asked = std::move(outside);
  asksJob |= body.asksJob;
  rules.insert(rules.end(), body.rules.begin(), body.rules.end());
  return rules;
}

/// The rules of all calls of a body that its own ones do not replace.
StrategyBinder::Rules StrategyBinder::bindCalls(Body &body) {
  std::vector<Rules> lists(body.calls.size());
  auto bindAll = [&](bool withMesh) {
    for (unsigned i = 0; i < body.calls.size(); ++i)
      if (hasMesh(*body.calls[i].callee) == withMesh) {
        BoundCall call;
        call.caller = &body.call;
        call.number = i;
        call.addition = body.call.addition;
        lists[i] = bindCall(body.calls[i], call, &body.call, body.asksJob);
      }
  };
  if (ok)
    bindAll(/*withMesh=*/true);
  for (auto [alias, env] : body.aliases)
    if (ok || meshIsBound)
      ok &= bindAlias(*alias, body.call, *env);
  if (!ok)
    return {};
  bindAll(/*withMesh=*/false);
  Rules rules;
  for (Rules &list : lists)
    ok &= precedence.replace(list, body.rules);
  for (Rules &list : lists) {
    ok &= precedence.merge(rules, list); // what is said twice is said later
    rules.insert(rules.end(), list.begin(), list.end());
  }
  return rules;
}

void StrategyBinder::visitStmts(ArrayRef<ast::Stmt *> stmts, Environment &env, Body &body) {
  for (const ast::Stmt *stmt : stmts)
    visitStmt(stmt, env, body);
}

void StrategyBinder::visitStmt(const ast::Stmt *stmt, Environment &env, Body &body) {
  if (auto *mesh = dyn_cast<ast::MeshStmt>(stmt)) {
    if (failsRequirement) // of the sizes of axes, say
      return;
    result.meshCall = &body.call;
    meshIsBound = bindMesh(evaluator, result, *mesh, env, body.call);
    ok &= meshIsBound;
  } else if (auto *alias = dyn_cast<ast::AxisAliasStmt>(stmt)) {
    body.aliases.emplace_back(alias, &env);
  } else if (auto *require = dyn_cast<ast::RequireStmt>(stmt)) {
    failsRequirement |= !evaluator.checkRequire(*require, env);
    ok &= !failsRequirement;
  } else if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    std::optional<CTValue> value = evaluator.evaluate(let->value, env);
    if (value) {
      value->setOrigin(getOrigin(let->value, env));
      env.define(let->targets[0].name, std::move(*value));
    }
    body.call.lets.emplace_back(&env, let);
    ok &= value.has_value();
  } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    visitIf(*choice, env, body);
  } else if (auto *call = dyn_cast<ast::ExprStmt>(stmt)) {
    const ast::StrategyDecl *callee = getCalledStrategy(evaluator.getProgram(), *body.call.callee, *stmt);
    body.calls.push_back({call->value, stmt, callee, &env, {asked.begin(), asked.end()}});
  } else if (!llvm::isa<ast::SearchStmt>(stmt)) {
    addRule(stmt, env, body);
  }
}

void StrategyBinder::visitIf(const ast::IfStmt &choice, Environment &env, Body &body) {
  std::optional<bool> condition = evaluator.evaluateCondition(choice.condition, env);
  if (!condition) {
    ok = false;
    return;
  }
  size_t before = asked.size();
  bool asksJob = false;
  walk(choice.condition, [&](const ast::Expr *part) {
    auto *call = dyn_cast<ast::CallExpr>(part);
    auto *callee = call && call->args.size() == 1 ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
    auto *name = callee ? dyn_cast<ast::NameExpr>(call->args[0].value) : nullptr;
    if (name && findBuiltin(callee->name) == BuiltinKind::ModelQuery)
      asked.push_back(name->name);
    auto *word = dyn_cast<ast::NameExpr>(part);
    asksJob |= word && !env.find(word->name) && findBuiltin(word->name) == BuiltinKind::PhaseQuery;
  });
  asksJob |= asked.size() > before;
  body.asksJob |= asksJob && !*condition;
  visitStmts(*condition ? choice.thenBody : choice.elseBody, scopes.environments.emplace_back(env), body);
  asked.truncate(before);
}

/// Whether a condition is about each iteration of a repeat, as that of `recompute layers[i].mlp if i < 4` is.
static bool namesIterations(const ast::LayerRuleStmt &layers) {
  return llvm::any_of(layers.patterns, [](const ast::Pattern &pattern) {
    StringRef index = pattern.getIndex();
    return !index.empty() && index != "*" && !llvm::isDigit(index.front());
  });
}

void StrategyBinder::addRule(const ast::Stmt *stmt, const Environment &env, Body &body) {
  if (llvm::isa<ast::PipelineStmt>(stmt)) {
    auto earlier = llvm::find_if(body.rules, [](const BoundRule &r) { return llvm::isa<ast::PipelineStmt>(r.stmt); });
    if (earlier != body.rules.end()) {
      diags.report(stmt->loc(), diag::PipelineTwice).range(stmt->range).note(earlier->stmt->loc(), diag::OtherOneHere);
      ok = false;
      return;
    }
  }
  BoundRule rule{stmt, &env, &body.call, /*isTrimmed=*/false, {asked.begin(), asked.end()}};
  if (auto *layers = getLayerRule(stmt); layers && layers->condition && !namesIterations(*layers)) {
    std::optional<bool> holds = evaluator.evaluateCondition(layers->condition, env);
    ok &= holds.has_value();
    if (!holds.value_or(false))
      return;
  }
  // A part that is given no axes says nothing of them.
  bool isSaid = precedence.filter(rule, [&](const RulePiece &piece) {
    const ast::AxisListSyntax *list = piece.getAxes();
    return !list || list->axes.empty() || llvm::any_of(list->axes, [&](const ast::Ident &name) {
      const CTValue *value = env.find(name.name);
      return !value || !value->isAxes() || !value->getElements().empty();
    });
  });
  if (isSaid)
    body.rules.push_back(std::move(rule));
}

/// Beside the mesh a name of the strategy; in a part one of this call alone.
bool StrategyBinder::bindAlias(const ast::AxisAliasStmt &alias, const BoundCall &call, Environment &env) {
  if (!axes.seesMesh(call)) {
    std::optional<CTValue> value = axes.evaluate(alias.axes, env, call);
    if (value)
      env.define(alias.name.name, std::move(*value));
    return value.has_value();
  }
  auto other = llvm::find_if(result.aliases, [&](const BoundAlias &a) { return a.name.name == alias.name.name; });
  const BoundAxis *axis = result.findAxis(alias.name.name);
  if (axis || other != result.aliases.end()) {
    diags.report(alias.name.loc(), diag::Redefinition)
        .range(alias.name.range)
        .with(alias.name.name)
        .note(axis ? axis->name.loc() : other->name.loc(), diag::PreviousHere)
        .with(alias.name.name);
    return false;
  }
  if (!axes.check(alias.axes, *call.env, call))
    return false;
  axes.addAlias(alias.name.name, call);
  bool isRole = llvm::none_of(call.callee->params, [&](const ast::Param &p) { return p.name.name == alias.name.name; });
  result.aliases.push_back({alias.name, result.expand(alias.axes, call.env), isRole});
  return true;
}

bool StrategyBinder::checkRule(const BoundRule &rule, const ast::Stmt *stmt) {
  bool good = true;
  if (auto *at = dyn_cast<ast::AtStmt>(stmt))
    for (const ast::Stmt *inner : at->rules)
      good &= checkRule(rule, inner);
  else
    forEachPiece(*stmt, nullptr, [&](const RulePiece &piece) {
      if (const ast::AxisListSyntax *list = piece.getAxes())
        good &= axes.check(*list, *rule.env, *rule.call);
    });
  if (auto *pipeline = dyn_cast<ast::PipelineStmt>(stmt)) {
    size_t count = good ? result.expand(pipeline->axes, rule.env).size() : 1;
    if (count != 1) {
      diags.report(pipeline->axes.range.Start, diag::PipelineAxes).range(pipeline->axes.range) << int64_t(count);
      good = false;
    }
  }
  return good;
}

std::optional<BoundStrategy> stage::sema::bindStrategy(Evaluator &evaluator, StrategyScopes scopes,
                                                       const StrategyCall &call) {
  StrategyBinder binder(evaluator, scopes);
  binder.result.decl = call.decl;
  binder.bind(call);
  if (!binder.ok)
    return std::nullopt;
  remarkForwarded(evaluator, call, scopes.calls);
  return std::move(binder.result);
}
