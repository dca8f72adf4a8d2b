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
  /// `resultIndices`: of a formula in place, as they are written.
  FormulaChecker(FormulaScope &scope, DiagnosticEngine &diags, IndexSet known, bool isInPlace,
                 ArrayRef<ast::Expr *> resultIndices = {})
      : scope(scope), diags(diags), known(std::move(known)), resultIndices(resultIndices), isInPlace(isInPlace) {}

  /// The indices accessed in a formula in place.
  IndexSet checkTop(const ast::Expr *formula);
  /// The indices accessed in `expr`. In a subscript an index counts as accessed by its name alone.
  IndexSet check(const ast::Expr *expr, bool inSubscript = false);

private:
  IndexSet checkName(const ast::NameExpr *name, bool inSubscript);
  void checkMembers(const ast::IndexExpr *access, const ast::CompoundExpr *compound, IndexSet &accessed);
  void reportUnknownIndex(StringRef name, SMRange range);
  void reportNotReduced(StringRef name, SMRange range);
  IndexSet checkAccess(const ast::IndexExpr *access);
  IndexSet checkCall(const ast::CallExpr *call, bool inSubscript);
  IndexSet checkReduction(const ast::CallExpr *call);
  IndexSet reportWithoutIndices(const ast::CallExpr *call, StringRef name);
  IndexSet checkConcat(const ast::CallExpr *call);
  void checkSizeOf(const ast::CallExpr *call);
  void checkArity(const ast::CallExpr *call, StringRef name);

  FormulaScope &scope;
  DiagnosticEngine &diags;
  IndexSet known;
  IndexSet unreduced;                  ///< In place: reported already.
  ArrayRef<ast::Expr *> resultIndices; ///< In place: as they are written, `b, s, h`.
  const ast::Expr *top = nullptr;      ///< In place: the whole formula.
  bool isInPlace;
};

void addAll(IndexSet &to, const IndexSet &from) {
  for (const auto &entry : from)
    to.insert(entry);
}

/// The index that an element of brackets names; empty if it names none.
StringRef indexName(const ast::Expr *expr) {
  if (auto *sized = dyn_cast<ast::SizedIndexExpr>(expr))
    return indexName(sized->index);
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    return name->name;
  if (auto *pack = dyn_cast<ast::EllipsisExpr>(expr))
    return pack->name.empty() ? "..." : pack->name;
  return "";
}

void collectIndex(const ast::Expr *expr, IndexSet &indices) {
  if (auto *sized = dyn_cast<ast::SizedIndexExpr>(expr))
    expr = sized->index;
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
  if (inSubscript)
    reportUnknownIndex(name->name, name->range);
  else if (!isWord)
    scope.reportUnknownName(name->name, name->range, diag::UnknownName);
  return accessed;
}

void FormulaChecker::reportUnknownIndex(StringRef name, SMRange range) {
  if (!isInPlace)
    scope.reportUnknownName(name, range, diag::UnknownIndex);
  else if (unreduced.insert({name, range}).second)
    reportNotReduced(name, range);
}

/// How many tensors of a formula have this subscript.
static unsigned countAccesses(const ast::Expr *formula, StringRef index) {
  unsigned count = 0;
  walk(formula, [&](const ast::Expr *part) {
    auto *access = dyn_cast<ast::IndexExpr>(part);
    IndexSet indices;
    for (const ast::Expr *subscript : access ? access->subscripts : ArrayRef<ast::Expr *>())
      collectIndex(subscript, indices);
    count += indices.count(index);
  });
  return count;
}

static std::string listExprs(ArrayRef<ast::Expr *> exprs) {
  std::string text;
  for (const ast::Expr *expr : exprs)
    text += (text.empty() ? "" : ", ") + textOf(expr);
  return text;
}

/// Two operands that share an index are multiplied and summed over it; an index of one operand alone was forgotten in
/// the result, or means the index of the sum that no other operand has.
void FormulaChecker::reportNotReduced(StringRef name, SMRange range) {
  auto *sum = dyn_cast<ast::CallExpr>(top);
  bool isSum = sum && sum->hasIndices && !sum->indices.empty() && sum->args.size() == 1;
  unsigned accesses = countAccesses(top, name);
  for (const ast::Expr *reduced : isSum &&accesses == 1 ? sum->indices : ArrayRef<ast::Expr *>())
    if (StringRef other = indexName(reduced); !other.empty() && countAccesses(top, other) == 1) {
      DiagnosticBuilder error = diags.report(range.Start, diag::IndexMeantOther).range(range) << name << other;
      error.fixIt(range, other);
      return;
    }
  std::string indices = listExprs(resultIndices);
  bool mayBeInResult = !indices.empty() && !StringRef(indices).contains('(');
  std::string summed = isSum ? textOf(sum->callee) + "[" + listExprs(sum->indices) + ", " + name.str() + "](...)"
                             : "sum[" + name.str() + "](" + textOf(top) + ")";
  std::string result = "[" + indices + ", " + name.str() + "]";
  if (accesses == 1 && mayBeInResult) {
    SMRange written(resultIndices.front()->range.Start, resultIndices.back()->range.End);
    diags.report(written.Start, diag::IndexNotReducedWrite)
        .range(written)
        .with(name, result)
        .note(range.Start, diag::NameInstead)
        .with("'" + name.str() + "' stands here; if the result does not have it, write '" + summed + "'");
    return;
  }
  SMRange written = isSum ? SMRange(sum->loc(), sum->indices.back()->range.End) : range;
  DiagnosticBuilder error = diags.report(written.Start, diag::IndexNotReducedWrite).range(written) << name << summed;
  if (mayBeInResult)
    error.note(range.Start, diag::NameInstead)
        << "if the result has this index, too, name it before the '=', as in '" + result + "'";
}

/// The parts of a dim are indices, and none of them stands on another dim of the access, too.
void FormulaChecker::checkMembers(const ast::IndexExpr *access, const ast::CompoundExpr *compound, IndexSet &accessed) {
  IndexSet others;
  for (const ast::Expr *subscript : access->subscripts)
    if (subscript != compound)
      collectIndex(subscript, others);
  for (const ast::Ident &member : compound->indices) {
    if (!others.insert({member.name, member.range}).second)
      diags.report(member.loc(), diag::IndexTwiceInAccess).range(member.range) << member.name << textOf(access);
    else if (known.count(member.name))
      accessed.insert({member.name, member.range});
    else
      reportUnknownIndex(member.name, member.range);
  }
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
    if (auto *compound = dyn_cast<ast::CompoundExpr>(subscript))
      checkMembers(access, compound, accessed);
    else if (llvm::isa<ast::EllipsisExpr>(subscript))
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
  bool isCallable = scope.isCallable(callee->name);
  std::optional<BuiltinKind> builtin = findBuiltin(callee->name);
  if (builtin == BuiltinKind::Reduction && !isCallable)
    return reportWithoutIndices(call, callee->name);
  for (const ast::Argument &argument : call->args)
    addAll(accessed, check(argument.value, inSubscript));
  if (isCallable)
    return accessed;
  if (!builtin || builtin == BuiltinKind::Word || builtin == BuiltinKind::ModelQuery ||
      builtin == BuiltinKind::WordFunction || builtin == BuiltinKind::CacheFunction ||
      builtin == BuiltinKind::PhaseQuery || builtin == BuiltinKind::ListFunction)
    scope.reportUnknownName(callee->name, callee->range, diag::UnknownName);
  else if (builtin == BuiltinKind::ElementFunction || builtin == BuiltinKind::DType)
    checkArity(call, callee->name);
  return accessed;
}

/// `sum(x[b, d] * w[d, f], d)`, `sum(x[b, d], axis = 1)`: the indices that the result lacks are those of the sum. What
/// is inside has no second fault.
IndexSet FormulaChecker::reportWithoutIndices(const ast::CallExpr *call, StringRef name) {
  const ast::Expr *body = call->args.empty() ? nullptr : call->args.front().value;
  IndexSet inside;
  if (body)
    walk(body, [&](const ast::Expr *part) {
      if (auto *access = dyn_cast<ast::IndexExpr>(part))
        for (const ast::Expr *subscript : access->subscripts)
          collectIndex(subscript, inside);
    });
  IndexSet before = known;
  std::string reduced;
  for (const auto &[index, range] : inside)
    if (isInPlace && known.insert({index, range}).second)
      reduced += (reduced.empty() ? "" : ", ") + index.str();
  IndexSet accessed = body ? check(body) : IndexSet();
  if (!isInPlace && !accessed.empty())
    reduced = accessed.back().first.str(); // of an op, often the last one
  diags.report(call->loc(), diag::ReductionWithoutIndices).range(call->range)
      << name << name.str() + "[" + (reduced.empty() ? "d" : reduced) + "](" + (body ? textOf(body) : "x") + ")";
  known = std::move(before);
  return isInPlace ? known : IndexSet();
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

static bool isConcat(const ast::Expr *expr) {
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *callee = call && call->hasIndices ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  return callee && callee->name == "concat";
}

IndexSet FormulaChecker::checkTop(const ast::Expr *formula) {
  top = formula;
  return isConcat(formula) ? checkConcat(llvm::cast<ast::CallExpr>(formula)) : check(formula);
}

/// `concat[s](a[b, s, d], c[b, s, d])`: accesses of tensors at indices, one of which they are put together along.
IndexSet FormulaChecker::checkConcat(const ast::CallExpr *call) {
  IndexSet accessed;
  auto refuse = [&](const ast::Expr *expr, diag::Message<> id) { diags.report(expr->loc(), id).range(expr->range); };
  StringRef along = call->indices.size() == 1 ? indexName(call->indices.front()) : "";
  if (along.empty() || !known.count(along))
    refuse(call, diag::ConcatIndex);
  if (call->args.size() < 2)
    refuse(call, diag::ConcatOperands);
  for (const ast::Argument &argument : call->args) {
    auto *access = dyn_cast<ast::IndexExpr>(argument.value);
    bool isPlain = access && llvm::isa<ast::NameExpr>(access->base) && !argument.name;
    IndexSet own;
    for (const ast::Expr *subscript : access ? access->subscripts : ArrayRef<ast::Expr *>())
      isPlain &= llvm::isa<ast::NameExpr>(subscript) && known.count(indexName(subscript)) &&
                 own.insert({indexName(subscript), subscript->range}).second;
    if (isPlain)
      addAll(accessed, checkAccess(access));
    else
      refuse(argument.value, diag::ConcatOperand);
  }
  if (known.count(along))
    accessed.insert({along, call->range}); // which an operand of one position lacks
  return accessed;
}

IndexSet FormulaChecker::checkReduction(const ast::CallExpr *call) {
  auto *callee = llvm::cast<ast::NameExpr>(call->callee);
  if (isConcat(call)) {
    diags.report(callee->loc(), diag::ConcatInside).range(call->range);
    return known; // what it has is no second fault
  }
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
    if (name.empty()) {
      diags.report(index->loc(), diag::IndexExpected).range(index->range) << textOf(index);
      collectIndex(index, unreduced); // what it should have reduced is no second fault
    } else if (known.insert({name, index->range}).second) {
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

/// Of several operands the first; null: no operand has subscripts.
static const ast::IndexExpr *findLeastSubscripts(const ast::Expr *formula) {
  const ast::IndexExpr *least = nullptr;
  walk(formula, [&](const ast::Expr *part) {
    auto *access = dyn_cast<ast::IndexExpr>(part);
    if (access && (!least || access->subscripts.size() < least->subscripts.size()))
      least = access;
  });
  return least;
}

/// `x[b, d]` of `x: [B, S, D]`, where the result has `s`: the one operand with fewer subscripts than dims lacks it.
static bool reportMissingSubscript(FormulaScope &scope, DiagnosticEngine &diags, const ast::Expr *formula,
                                   StringRef name, SMRange result) {
  const ast::IndexExpr *lacking = nullptr;
  const ast::TensorType *shape = nullptr;
  walk(formula, [&](const ast::Expr *part) {
    auto *access = dyn_cast<ast::IndexExpr>(part);
    auto *tensor = access ? dyn_cast<ast::NameExpr>(access->base) : nullptr;
    const ast::TensorType *declared = tensor ? scope.findShape(tensor->name) : nullptr;
    if (declared && declared->dims.size() == access->subscripts.size() + 1)
      std::tie(lacking, shape) = std::pair(access, declared);
  });
  if (!lacking)
    return false;
  // Behind the subscripts that are called like the dims before it, as the index is called like its dim.
  std::string dims, written;
  size_t taken = 0;
  for (const ast::ShapeDim &dim : shape->dims) {
    std::string size = textOf(dim.size);
    dims += (dims.empty() ? "" : ", ") + size;
    bool isNext = taken < lacking->subscripts.size() && !StringRef(size).equals_insensitive(name);
    written += (written.empty() ? "" : ", ") + (isNext ? textOf(lacking->subscripts[taken++]) : name.str());
  }
  if (taken != lacking->subscripts.size())
    return false;
  diags.report(lacking->loc(), diag::SubscriptMissing)
      .range(lacking->range)
      .with(textOf(lacking->base), dims, int64_t(taken), name, textOf(lacking->base) + "[" + written + "]")
      .note(result.Start, diag::NameInstead)
      .with("the result has '" + name.str() + "' here");
  return true;
}

void stage::sema::checkFormula(FormulaScope &scope, DiagnosticEngine &diags, ArrayRef<ast::Expr *> indices,
                               const ast::Expr *formula) {
  IndexSet result;
  for (const ast::Expr *index : indices) {
    if (auto *sized = dyn_cast<ast::SizedIndexExpr>(index)) {
      scope.checkOutside(sized->size);
      index = sized->index;
    }
    llvm::SmallVector<std::pair<StringRef, SMRange>, 2> names;
    if (auto *compound = dyn_cast<ast::CompoundExpr>(index))
      for (const ast::Ident &member : compound->indices)
        names.emplace_back(member.name, member.range);
    else
      names.emplace_back(indexName(index), index->range);
    for (auto [name, range] : names)
      if (name.empty())
        diags.report(index->loc(), diag::IndexExpected).range(index->range) << textOf(index);
      else if (!result.insert({name, range}).second)
        diags.report(range.Start, diag::IndexTwice).range(range) << name;
  }
  IndexSet accessed = FormulaChecker(scope, diags, result, /*isInPlace=*/true, indices).checkTop(formula);
  checkReduced(diags, accessed, result);
  for (const auto &[name, range] : result) {
    if (accessed.count(name) || reportMissingSubscript(scope, diags, formula, name, range))
      continue;
    DiagnosticBuilder error = diags.report(range.Start, diag::IndexWithoutSize).range(range) << name;
    if (const ast::IndexExpr *least = findLeastSubscripts(formula))
      error.note(least->loc(), diag::NameInstead)
          << "each dim of an operand has a subscript: does '" + textOf(least) + "' lack '" + name.str() + "'?";
  }
}

IndexSet stage::sema::checkOpFormula(FormulaScope &scope, DiagnosticEngine &diags, const IndexSet &declared,
                                     const ast::Expr *formula) {
  return FormulaChecker(scope, diags, declared, /*isInPlace=*/false).check(formula);
}
