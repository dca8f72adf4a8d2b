//===- PartAxes.cpp - axes that calls give to parts -----------------------===//
//
// Problem: a part does not know how the strategies that call it name their axes.
//
//   strategy distributed_optimizer(copies: axes = data) { partition optimizer over copies; }
//   strategy s(dp, cp) {
//     mesh (dp, cp);
//     axis data = (dp, cp);
//     distributed_optimizer();                // copies is data: the ranks of dp and cp
//     distributed_optimizer(copies = dp);     // copies is dp
//   }
//
// Algorithm: an argument is a name, several in parentheses, `none`, or an `if` that chooses one of these. A name is an
// axes parameter of the strategy that calls, or an axis that it sees: one of a mesh, or of a statement `axis`, in its
// own body or in that of a strategy that it calls. So a part sees its parameters, and no axis of those that call it.
// The default of a parameter is a name that the calling strategy gives to axes.
//
//===----------------------------------------------------------------------===//
#include "PartAxes.h"
#include "JobWords.h"
#include "Meanings.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

llvm::SmallVector<StringRef, 4> BoundStrategy::expand(const ast::AxisListSyntax &axes, const Environment *env) const {
  llvm::SmallVector<StringRef, 4> result;
  auto add = [&](StringRef name) {
    auto alias = llvm::find_if(aliases, [&](const BoundAlias &known) { return known.name.name == name; });
    if (alias != aliases.end())
      result.append(alias->axes.begin(), alias->axes.end());
    else if (findAxis(name))
      result.push_back(name);
  };
  for (const ast::Ident &name : axes.axes) {
    const CTValue *value = env ? env->find(name.name) : nullptr;
    if (!value || !value->isAxes()) {
      add(name.name);
      continue;
    }
    for (const CTValue &axis : value->getElements())
      add(axis.getText());
  }
  return result;
}

/// Whether a body has, or one that it calls has, what stands in the body of `owner`.
static bool sees(const BoundCall &in, const BoundCall *owner) {
  while (owner && owner != &in)
    owner = owner->caller;
  return owner;
}

bool PartAxes::isKnown(StringRef name, const BoundCall &in) const {
  auto isNamed = [&](const auto &known) { return known.name.name == name; };
  auto alias = aliasOwners.find(name);
  if (alias != aliasOwners.end())
    return sees(in, alias->second);
  return sees(in, strategy.meshCall) &&
         (llvm::any_of(strategy.mesh, isNamed) || llvm::any_of(strategy.aliases, isNamed));
}

CTValue PartAxes::makeAxes(StringRef name) const {
  ast::Ident ident{name, SMRange()};
  int64_t ranks = 1;
  for (StringRef axis : strategy.expand({ident, SMRange()}))
    ranks *= strategy.findAxis(axis)->size;
  return CTValue::axes({CTValue::word(name)}, ranks);
}

bool PartAxes::seesMesh(const BoundCall &in) const { return sees(in, strategy.meshCall); }

std::optional<CTValue> PartAxes::evaluateName(const ast::Ident &name, const Environment &env, const BoundCall &from) {
  const CTValue *value = env.find(name.name);
  if (value && value->isAxes())
    return *value;
  if (name.name == "none")
    return CTValue::axes({}, 1);
  if (isKnown(name.name, from))
    return makeAxes(name.name);
  reportUnknown(name, env, from);
  return std::nullopt;
}

std::optional<CTValue> PartAxes::join(ArrayRef<CTValue> parts, SMRange range) {
  std::vector<CTValue> names;
  int64_t ranks = 1;
  llvm::SmallVector<StringRef, 4> seen;
  for (const CTValue &part : parts) {
    ranks *= part.getRanks();
    for (const CTValue &name : part.getElements()) {
      names.push_back(name);
      ast::Ident ident{name.getText(), SMRange()};
      for (StringRef axis : strategy.expand({ident, SMRange()})) {
        if (llvm::is_contained(seen, axis)) {
          evaluator.getDiags().report(range.Start, diag::AxisListedTwice).range(range) << axis;
          return std::nullopt;
        }
        seen.push_back(axis);
      }
    }
  }
  return CTValue::axes(std::move(names), ranks);
}

std::optional<CTValue> PartAxes::evaluate(const ast::AxisListSyntax &names, const Environment &env,
                                          const BoundCall &from) {
  std::vector<CTValue> parts;
  for (const ast::Ident &name : names.axes) {
    std::optional<CTValue> value = evaluateName(name, env, from);
    if (!value)
      return std::nullopt;
    parts.push_back(std::move(*value));
  }
  return join(parts, names.range);
}

std::optional<CTValue> PartAxes::evaluate(const ast::Expr *expr, const Environment &env, const BoundCall &from) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    return evaluateName({name->name, name->range}, env, from);
  if (auto *choice = dyn_cast<ast::IfExpr>(expr)) {
    std::optional<bool> condition = evaluator.evaluateCondition(choice->condition, env);
    return condition ? evaluate(*condition ? choice->thenExpr : choice->elseExpr, env, from) : std::nullopt;
  }
  if (auto *tuple = dyn_cast<ast::TupleExpr>(expr)) {
    std::vector<CTValue> parts;
    for (const ast::Expr *element : tuple->elements) {
      std::optional<CTValue> value = evaluate(element, env, from);
      if (!value)
        return std::nullopt;
      parts.push_back(std::move(*value));
    }
    return join(parts, expr->range);
  }
  evaluator.getDiags().report(expr->loc(), diag::AxesExpected).range(expr->range) << textOf(expr);
  return std::nullopt;
}

/// `dp`, or `(dp, cp)`.
std::string PartAxes::listMeshAxes() const {
  std::vector<std::string> names;
  for (const BoundAxis &axis : strategy.mesh)
    names.push_back(axis.name.name.str());
  return names.empty() ? "dp" : names.front();
}

/// `dp`, `(dp, cp)`: what the strategy says of the batch, along which ranks hold copies of parameters.
static std::optional<std::string> findBatchAxes(ArrayRef<ast::Stmt *> body) {
  for (const ast::Stmt *stmt : body)
    if (auto *shard = dyn_cast<ast::ShardStmt>(stmt))
      for (const ast::ShardStmt::Item &item : shard->items)
        for (const ast::Ident &dim : item.dims)
          if (dim.name == batchDim)
            return getText(item.axes.range);
  return std::nullopt;
}

/// A mesh that the strategy has in an `if` that is not taken; null: there is none.
static const ast::Stmt *findMesh(ArrayRef<ast::Stmt *> body, bool isInside = false) {
  for (const ast::Stmt *stmt : body) {
    if (isInside && llvm::isa<ast::MeshStmt>(stmt))
      return stmt;
    if (auto *choice = dyn_cast<ast::IfStmt>(stmt))
      for (ArrayRef<ast::Stmt *> branch : {choice->thenBody, choice->elseBody})
        if (const ast::Stmt *mesh = findMesh(branch, /*isInside=*/true))
          return mesh;
  }
  return nullptr;
}

std::optional<CTValue> PartAxes::evaluateDefault(const ast::Param &param, const Environment &env, const BoundCall &from,
                                                 const BoundCall &call) {
  auto *name = dyn_cast<ast::NameExpr>(param.defaultValue);
  if (!name || env.find(name->name) || name->name == "none" || isKnown(name->name, from))
    return evaluate(param.defaultValue, env, from);
  evaluator.getDiags()
      .report(call.range.Start, diag::PartNeedsAxis)
      .range(call.range)
      .with(call.callee->name.name, param.name.name, name->name, from.callee->name.name)
      .note(param.name.loc(), diag::PreviousHere)
      .with(param.name.name)
      .note(SMLoc(), diag::AxisInstead)
      .with(name->name, param.name.name, findBatchAxes(from.callee->body).value_or(listMeshAxes()));
  return std::nullopt;
}

void PartAxes::reportUnknown(const ast::Ident &name, const Environment &env, const BoundCall &in) {
  std::vector<Candidate> candidates;
  for (const Environment *scope = &env; scope; scope = scope->getParent())
    for (const auto &[param, value] : scope->getOwn())
      if (value.isAxes())
        candidates.push_back({param, SMLoc()});
  for (const BoundAxis &axis : strategy.mesh)
    if (isKnown(axis.name.name, in))
      candidates.push_back({axis.name.name, axis.name.loc()});
  for (const BoundAlias &alias : strategy.aliases)
    if (isKnown(alias.name.name, in))
      candidates.push_back({alias.name.name, alias.name.loc()});
  std::string names;
  for (const Candidate &candidate : candidates)
    names += ((names.empty() ? "" : ", ") + candidate.name).str();
  DiagnosticEngine &diags = evaluator.getDiags();
  bool isOfCaller = llvm::any_of(strategy.mesh, [&](const BoundAxis &axis) { return axis.name.name == name.name; }) ||
                    llvm::any_of(strategy.aliases, [&](const BoundAlias &a) { return a.name.name == name.name; });
  if (isOfCaller) {
    diags.report(name.loc(), diag::AxisOfCaller).range(name.range) << in.callee->name.name << name.name;
    return;
  }
  const ast::Stmt *mesh = strategy.mesh.empty() ? findMesh(in.callee->body) : nullptr;
  if (mesh && std::exchange(saysMeshIsMissing, true))
    return;
  DiagnosticBuilder error = diags.report(name.loc(), diag::UnknownAxis).range(name.range)
                            << name.name << (names.empty() ? "none" : names);
  if (findNearest(name.name, candidates)) {
    suggestNearest(error, name.name, name.range, candidates);
    return;
  }
  if (mesh) {
    error.note(mesh->loc(), diag::MeshNotTaken);
    return;
  }
  // `dp` where the mesh has `data`.
  auto beginsAlike = [&](const Candidate &each) { return each.name.startswith(name.name.take_front()); };
  if (llvm::count_if(candidates, beginsAlike) == 1) {
    const Candidate &meant = *llvm::find_if(candidates, beginsAlike);
    error.fixIt(name.range, meant.name);
    error.note(meant.loc, diag::DidYouMean) << meant.name;
    return;
  }
  const ast::ModuleDecl *model = evaluator.getModel();
  if (model && hasDim(*model, name.name) && !candidates.empty())
    error.note(SMLoc(), diag::DimAsAxis) << name.name << model->name.name << candidates.front().name;
  else
    error.note(SMLoc(), diag::NewAxisInMesh) << name.name << (names.empty() ? "" : names + ", ");
}

bool PartAxes::check(const ast::AxisListSyntax &axes, const Environment &env, const BoundCall &in) {
  bool good = true;
  llvm::SmallVector<StringRef, 4> seen;
  for (const ast::Ident &name : axes.axes) {
    const CTValue *value = env.find(name.name);
    if ((!value || !value->isAxes()) && !isKnown(name.name, in)) {
      reportUnknown(name, env, in);
      good = false;
      continue;
    }
    for (StringRef axis : strategy.expand({name, name.range}, &env)) {
      if (llvm::is_contained(seen, axis)) {
        evaluator.getDiags().report(name.loc(), diag::AxisListedTwice).range(name.range) << axis;
        good = false;
      }
      seen.push_back(axis);
    }
  }
  return good;
}
