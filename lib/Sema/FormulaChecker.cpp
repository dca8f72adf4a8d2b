//===- FormulaChecker.cpp - the indices of element formulas ---------------===//
#include "FormulaChecker.h"
#include "EvaluatorSupport.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"

using namespace stage;
using namespace stage::sema;
using llvm::ArrayRef;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {
class FormulaChecker {
public:
  /// `known`: every index of an op, or the result's of a formula in place, where reductions add theirs.
  FormulaChecker(FormulaScope &scope, DiagnosticEngine &diags, IndexSet known, bool isInPlace)
      : scope(scope), diags(diags), known(std::move(known)), isInPlace(isInPlace) {}

  /// The indices accessed in `expr`. In a subscript an index counts as accessed by its name alone.
  IndexSet check(const ast::Expr *expr, bool inSubscript = false);

private:
  IndexSet checkName(const ast::NameExpr *name, bool inSubscript);
  IndexSet checkAccess(const ast::IndexExpr *access);
  IndexSet checkCall(const ast::CallExpr *call, bool inSubscript);
  IndexSet checkReduction(const ast::CallExpr *call);
  void checkSizeOf(const ast::CallExpr *call);
  void checkArity(const ast::CallExpr *call, StringRef name);

  FormulaScope &scope;
  DiagnosticEngine &diags;
  IndexSet known;
  IndexSet unreduced; ///< In place: reported already.
  bool isInPlace;
};

void addAll(IndexSet &to, const IndexSet &from) {
  for (const auto &entry : from)
    to.insert(entry);
}

/// The index that an element of brackets names; empty if it names none.
StringRef indexName(const ast::Expr *expr) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    return name->name;
  if (auto *pack = dyn_cast<ast::EllipsisExpr>(expr))
    return pack->name.empty() ? "..." : pack->name;
  return "";
}

void collectIndex(const ast::Expr *expr, IndexSet &indices) {
  if (auto *compound = dyn_cast<ast::CompoundExpr>(expr)) {
    for (const ast::Ident &index : compound->indices)
      indices.insert({index.name, index.range});
    return;
  }
  StringRef name = indexName(expr);
  if (!name.empty())
    indices.insert({name, expr->range});
}
} // namespace

IndexSet FormulaChecker::check(const ast::Expr *expr, bool inSubscript) {
  IndexSet accessed;
  switch (expr->kind) {
  case ast::NodeKind::NumberExpr:
  case ast::NodeKind::BoolExpr:
    return accessed;
  case ast::NodeKind::NameExpr:
    return checkName(llvm::cast<ast::NameExpr>(expr), inSubscript);
  case ast::NodeKind::IndexExpr:
    return checkAccess(llvm::cast<ast::IndexExpr>(expr));
  case ast::NodeKind::CallExpr:
    return checkCall(llvm::cast<ast::CallExpr>(expr), inSubscript);
  case ast::NodeKind::UnaryExpr:
  case ast::NodeKind::BinaryExpr:
  case ast::NodeKind::IfExpr:
  case ast::NodeKind::RangeExpr:
    forEachChild(expr, [&](const ast::Expr *child) { addAll(accessed, check(child, inSubscript)); });
    return accessed;
  default:
    diags.report(expr->loc(), diag::NotInFormula).range(expr->range) << textOf(expr);
    return accessed;
  }
}

IndexSet FormulaChecker::checkName(const ast::NameExpr *name, bool inSubscript) {
  IndexSet accessed;
  if (known.count(name->name)) {
    if (inSubscript)
      accessed.insert({name->name, name->range});
    return accessed;
  }
  if (scope.resolve(name->name, name->range, accessed))
    return accessed;
  bool isWord = !inSubscript && findBuiltin(name->name) == BuiltinKind::Word;
  if (inSubscript && isInPlace) {
    if (unreduced.insert({name->name, name->range}).second)
      diags.report(name->loc(), diag::IndexNotReduced).range(name->range) << name->name;
  } else if (!isWord) {
    scope.reportUnknownName(name->name, name->range, inSubscript ? diag::UnknownIndex : diag::UnknownName);
  }
  return accessed;
}

IndexSet FormulaChecker::checkAccess(const ast::IndexExpr *access) {
  IndexSet accessed;
  auto *base = dyn_cast<ast::NameExpr>(access->base);
  if (isInPlace) {
    scope.checkOutside(access->base);
  } else if (!base) {
    diags.report(access->base->loc(), diag::NotInFormula).range(access->base->range) << textOf(access->base);
  } else {
    IndexSet declared; // the subscripts stand in their place
    if (!scope.resolve(base->name, base->range, declared))
      scope.reportUnknownName(base->name, base->range, diag::UnknownName);
  }
  for (const ast::Expr *subscript : access->subscripts) {
    if (llvm::isa<ast::EllipsisExpr, ast::CompoundExpr>(subscript))
      collectIndex(subscript, accessed);
    else
      addAll(accessed, check(subscript, /*inSubscript=*/true));
  }
  return accessed;
}

void FormulaChecker::checkArity(const ast::CallExpr *call, StringRef name) {
  bool several = name == "max" || name == "min";
  size_t expected = name == "where" ? 3 : several ? 2 : 1;
  size_t found = call->args.size();
  if (several ? found < expected : found != expected)
    diags.report(call->loc(), diag::WrongArgumentCount).range(call->range)
        << name << (several ? "at least 2" : std::to_string(expected)) << int64_t(found);
}

IndexSet FormulaChecker::checkCall(const ast::CallExpr *call, bool inSubscript) {
  IndexSet accessed;
  auto *callee = dyn_cast<ast::NameExpr>(call->callee);
  if (!callee) {
    diags.report(call->callee->loc(), diag::NotInFormula).range(call->callee->range) << textOf(call->callee);
    return accessed;
  }
  if (call->hasIndices)
    return checkReduction(call);
  if (callee->name == "size" && !scope.isCallable("size")) {
    checkSizeOf(call);
    return accessed;
  }
  for (const ast::Argument &argument : call->args)
    addAll(accessed, check(argument.value, inSubscript));
  if (scope.isCallable(callee->name))
    return accessed;
  std::optional<BuiltinKind> builtin = findBuiltin(callee->name);
  if (builtin == BuiltinKind::Reduction) {
    diags.report(call->loc(), diag::ReductionWithoutIndices).range(call->range) << callee->name;
    return IndexSet(); // what it should have reduced is no second fault
  }
  if (!builtin || builtin == BuiltinKind::Word || builtin == BuiltinKind::ModelQuery)
    scope.reportUnknownName(callee->name, callee->range, diag::UnknownName);
  else if (builtin == BuiltinKind::ElementFunction || builtin == BuiltinKind::DType)
    checkArity(call, callee->name);
  return accessed;
}

/// `size(e)` names an index and accesses nothing.
void FormulaChecker::checkSizeOf(const ast::CallExpr *call) {
  checkArity(call, "size");
  for (const ast::Argument &argument : call->args) {
    StringRef name = indexName(argument.value);
    if (!known.count(name))
      scope.reportUnknownName(name.empty() ? textOf(argument.value) : name.str(), argument.value->range,
                              diag::UnknownIndex);
  }
}

IndexSet FormulaChecker::checkReduction(const ast::CallExpr *call) {
  auto *callee = llvm::cast<ast::NameExpr>(call->callee);
  if (!isReduction(callee->name))
    diags.report(callee->loc(), diag::NotAReduction).range(callee->range) << callee->name;
  if (call->args.size() != 1)
    diags.report(call->loc(), diag::WrongArgumentCount).range(call->range)
        << callee->name << "1" << int64_t(call->args.size());

  // In place, a bracket is what makes a name an index; it ends with the reduction.
  llvm::SmallVector<StringRef, 4> opened;
  llvm::StringSet<> unknown;
  for (const ast::Expr *index : call->indices) {
    StringRef name = indexName(index);
    if (name.empty())
      diags.report(index->loc(), diag::IndexExpected).range(index->range) << textOf(index);
    else if (known.insert({name, index->range}).second) {
      opened.push_back(name);
      if (!isInPlace) { // said here once, and not at each use in the body
        diags.report(index->loc(), diag::ReducedIndexUnknown).range(index->range) << name;
        unknown.insert(name);
      }
    }
  }
  IndexSet accessed;
  for (const ast::Argument &argument : call->args)
    addAll(accessed, check(argument.value));
  for (const ast::Expr *index : call->indices) {
    StringRef name = indexName(index);
    if (!name.empty() && !accessed.count(name) && !unknown.contains(name))
      diags.report(index->loc(), diag::ReducedIndexMissing).range(index->range) << name;
    accessed.erase(name);
  }
  for (StringRef name : opened)
    known.erase(name);
  return accessed;
}

void stage::sema::collectIndices(const ast::TensorType &type, IndexSet &indices) {
  for (const ast::ShapeDim &dim : type.dims) {
    if (dim.index)
      indices.insert({dim.index.name, dim.index.range});
    else
      collectIndex(dim.size, indices);
  }
}

void stage::sema::checkReduced(DiagnosticEngine &diags, const IndexSet &accessed, const IndexSet &result) {
  for (const auto &[name, range] : accessed)
    if (!result.count(name))
      diags.report(range.Start, diag::IndexNotReduced).range(range) << name;
}

void stage::sema::checkResultIndices(DiagnosticEngine &diags, const ast::TensorType &result, const IndexSet &operands) {
  IndexSet indices;
  collectIndices(result, indices);
  for (const auto &[name, range] : indices)
    if (!operands.count(name))
      diags.report(range.Start, diag::ResultIndexWithoutSize).range(range) << name;
}

void stage::sema::checkFormula(FormulaScope &scope, DiagnosticEngine &diags, ArrayRef<ast::Expr *> indices,
                               const ast::Expr *formula) {
  IndexSet result;
  for (const ast::Expr *index : indices) {
    StringRef name = indexName(index);
    if (name.empty())
      diags.report(index->loc(), diag::IndexExpected).range(index->range) << textOf(index);
    else if (!result.insert({name, index->range}).second)
      diags.report(index->loc(), diag::IndexTwice).range(index->range) << name;
  }
  IndexSet accessed = FormulaChecker(scope, diags, result, /*isInPlace=*/true).check(formula);
  checkReduced(diags, accessed, result);
  for (const auto &[name, range] : result)
    if (!accessed.count(name))
      diags.report(range.Start, diag::IndexWithoutSize).range(range) << name;
}

IndexSet stage::sema::checkOpFormula(FormulaScope &scope, DiagnosticEngine &diags, const IndexSet &declared,
                                     const ast::Expr *formula) {
  return FormulaChecker(scope, diags, declared, /*isInPlace=*/false).check(formula);
}
