//===- CheckOp.cpp - the names of ops -------------------------------------===//
//
// An op's names are of two kinds that do not meet: indices, which its shapes
// declare, and operands, scalar parameters and lets. Inside formulas an index hides
// a value of the same name; clauses say which kind they take.
//
//===----------------------------------------------------------------------===//
#include "FormulaChecker.h"
#include "NameChecker.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;
using Clause = ast::OpClauseStmt::Clause;

namespace {
class OpChecker : public NameChecker, private FormulaScope {
public:
  OpChecker(const Program &program, const ast::File &file, const ast::OpDecl &op)
      : NameChecker(program, file), op(op) {}

  void check();

private:
  void checkOpParams();
  void checkResults();
  void findRouted();
  bool has(const ast::OpDecl::Result &result, StringRef index) const;
  bool isInAllResults(StringRef index) const;
  void checkFormulas();
  void checkResultFormula(const ast::Expr *formula, const ast::OpDecl::Result &result);
  void checkStmt(const ast::Stmt *stmt);
  void checkAssign(const ast::LetStmt &assign);
  void checkClause(const ast::OpClauseStmt &clause);
  void checkClauseOnce(const ast::OpClauseStmt &clause);
  void checkMask(const ast::OpClauseStmt &clause);
  void checkIndexNames(ArrayRef<ast::Ident> names);
  void checkSaved(ArrayRef<ast::Ident> names, bool resultsToo);
  void checkCost(const ast::Expr *cost);
  bool hasClause(ArrayRef<Clause> clauses) const;
  const ast::OpDecl::Result *findResult(StringRef name) const;

  bool resolve(StringRef name, SMRange range, IndexSet &accessed) override;
  bool isCallable(StringRef name) override;
  void checkOutside(const ast::Expr *expr) override { checkExpr(expr); }
  void reportUnknownName(StringRef name, SMRange range, diag::Message<diag::Text> id) override;
  void explainUnknown(DiagnosticBuilder &error, StringRef name) override;

  const ast::OpDecl &op;
  IndexSet operandIndices;              ///< Of operands and `size c` parameters: they have a size.
  IndexSet indices;                     ///< Those of results too.
  IndexSet routed, routing;             ///< Of an op that routes: indices that follow from others, and those.
  llvm::StringMap<IndexSet> accessedBy; ///< By operand or let: the indices that its bare name stands for.
  llvm::SmallVector<const ast::OpDecl::Result *, 2> assigned;
};
} // namespace

bool OpChecker::hasClause(ArrayRef<Clause> clauses) const {
  return llvm::any_of(op.body, [&](const ast::Stmt *stmt) {
    auto *clause = dyn_cast<ast::OpClauseStmt>(stmt);
    return clause && llvm::is_contained(clauses, clause->clause);
  });
}

/// docs/Memory.md, M17.
static bool isFlopClass(StringRef name) { return name == "contraction" || name == "attention" || name == "other"; }

/// A lone result is called `result` besides its name.
const ast::OpDecl::Result *OpChecker::findResult(StringRef name) const {
  if (op.results.size() == 1 && name == "result")
    return &op.results[0];
  for (const ast::OpDecl::Result &result : op.results)
    if (result.name && result.name.name == name)
      return &result;
  return nullptr;
}

void OpChecker::check() {
  ScopeGuard scope(*this);
  checkOpParams();
  checkResults();
  if (op.formula)
    checkFormulas();
  for (const ast::Stmt *stmt : op.body)
    checkStmt(stmt);

  // What is written in place has no formula by nature.
  if (hasClause({Clause::Opaque, Clause::Updates}))
    return;
  for (const ast::OpDecl::Result &result : op.results)
    if (!op.formula && !llvm::is_contained(assigned, &result))
      diags.report(op.name.loc(), diag::OpWithoutFormula).range(op.name.range)
          << op.name.name << (result.name ? result.name.name : "result");
}

void OpChecker::checkOpParams() {
  for (const ast::Param &param : op.params) {
    if (param.defaultValue)
      checkExpr(param.defaultValue);
    checkScalarKind(param);
    define(param.tensor ? SymbolKind::Tensor : SymbolKind::Scalar, param.name);
    if (param.sizeIndex)
      operandIndices.insert({param.sizeIndex.name, param.sizeIndex.range});
    if (!param.tensor)
      continue;
    checkDType(param.tensor->dtype);
    checkDimsOnce(*param.tensor);
    IndexSet own;
    collectIndices(*param.tensor, own);
    for (const auto &entry : own)
      operandIndices.insert(entry);
    accessedBy[param.name.name] = std::move(own);
  }
  indices = operandIndices;
}

void OpChecker::checkResults() {
  std::vector<ast::Ident> names;
  bool sizesDerive = !hasClause({Clause::Opaque});
  for (const ast::OpDecl::Result &result : op.results) {
    if (result.name)
      names.push_back(result.name);
    checkDType(result.type->dtype);
    checkDimsOnce(*result.type);
    collectIndices(*result.type, indices);
    if (sizesDerive)
      checkResultIndices(diags, *result.type, operandIndices);
    for (const ast::ShapeDim &dim : result.type->dims)
      if (!llvm::isa<ast::NameExpr, ast::EllipsisExpr, ast::CompoundExpr>(dim.size))
        checkCost(dim.size);
  }
  checkEntriesOnce(names);
  findRouted();
}

/// `routes b, s, j -> x, c`, in either direction: the indices of an operand of integers, and two others. The formula
/// may speak of those that the results lack as if they stood there: they follow from the others. If no operand has
/// these alone, one may have more, as all results do.
void OpChecker::findRouted() {
  for (const ast::Stmt *stmt : op.body) {
    auto *clause = dyn_cast<ast::OpClauseStmt>(stmt);
    if (!clause || clause->clause != Clause::Routes)
      continue;
    auto isOfIntegers = [&](ArrayRef<ast::Ident> side, ArrayRef<ast::Ident> otherSide, bool hasMore) {
      return llvm::any_of(op.params, [&](const ast::Param &param) {
        StringRef dtype = param.tensor && param.tensor->dtype ? param.tensor->dtype.name : "";
        const IndexSet &own = accessedBy[param.name.name];
        auto isFurther = [&](const auto &entry) {
          auto isMeant = [&](const ast::Ident &index) { return index.name == entry.first; };
          return llvm::any_of(side, isMeant) || (llvm::none_of(otherSide, isMeant) && isInAllResults(entry.first));
        };
        return isDTypeName(dtype) && !isFloatName(dtype) && (own.size() > side.size()) == hasMore &&
               llvm::all_of(side, [&](const ast::Ident &index) { return own.count(index.name); }) &&
               llvm::all_of(own, isFurther);
      });
    };
    bool isLeft = false, isRight = false;
    for (bool hasMore : {false, true})
      if (!isLeft && !isRight) {
        isLeft = isOfIntegers(clause->names, clause->names2, hasMore);
        isRight = isOfIntegers(clause->names2, clause->names, hasMore);
      }
    ArrayRef<ast::Ident> tokens = isLeft ? clause->names : clause->names2,
                         place = isLeft ? clause->names2 : clause->names;
    bool isApart = llvm::none_of(place, [&](const ast::Ident &index) {
      return llvm::any_of(tokens, [&](const ast::Ident &other) { return other.name == index.name; });
    });
    bool isGood = isLeft != isRight && place.size() == 2 && isApart;
    if (!isGood)
      diags.report(clause->loc(), diag::BadRoutes).range(clause->range) << op.name.name;
    bool isToSlots = isGood && isInAllResults(place[1].name);
    if (isGood && !isToSlots &&
        llvm::any_of(op.results, [&](const ast::OpDecl::Result &result) { return has(result, place[1].name); })) {
      diags.report(clause->loc(), diag::RoutesToSome).range(clause->range) << op.name.name << place[1].name;
      isGood = false;
    }
    if (!isGood) { // what the formula lacks is no second fault
      for (ArrayRef<ast::Ident> side : {tokens, place})
        for (const ast::Ident &index : side)
          routed.insert({index.name, index.range});
      return;
    }
    for (const ast::Ident &index : isToSlots ? tokens : place)
      routed.insert({index.name, index.range});
    for (const ast::Ident &index : isToSlots ? place : tokens)
      routing.insert({index.name, index.range});
  }
}

bool OpChecker::has(const ast::OpDecl::Result &result, StringRef index) const {
  IndexSet own;
  collectIndices(*result.type, own);
  return own.count(index);
}

bool OpChecker::isInAllResults(StringRef index) const {
  return llvm::all_of(op.results, [&](const ast::OpDecl::Result &result) { return has(result, index); });
}

void OpChecker::checkFormulas() {
  auto *tuple = dyn_cast<ast::TupleExpr>(op.formula);
  size_t count = tuple ? tuple->elements.size() : 1;
  if (count != op.results.size()) {
    diags.report(op.formula->loc(), diag::ResultCount).range(op.formula->range)
        << op.name.name << int64_t(op.results.size()) << int64_t(count);
    return;
  }
  for (size_t i = 0; i != count; ++i)
    checkResultFormula(tuple ? tuple->elements[i] : op.formula, op.results[i]);
}

void OpChecker::checkResultFormula(const ast::Expr *formula, const ast::OpDecl::Result &result) {
  IndexSet own = routed;
  collectIndices(*result.type, own);
  checkReduced(diags, checkOpFormula(*this, diags, indices, formula), own);
}

void OpChecker::checkStmt(const ast::Stmt *stmt) {
  auto *let = dyn_cast<ast::LetStmt>(stmt);
  if (!let)
    return checkClause(*llvm::cast<ast::OpClauseStmt>(stmt));
  if (let->form == ast::LetStmt::Form::Assign)
    return checkAssign(*let);
  if (let->isFormula || let->type || let->targets.size() != 1) {
    diags.report(let->loc(), diag::PlainLetOnly).range(let->range) << "an op";
    return;
  }
  accessedBy[let->targets[0].name] = checkOpFormula(*this, diags, indices, let->value);
  defineValue(SymbolKind::Let, let->targets[0]);
}

void OpChecker::checkAssign(const ast::LetStmt &assign) {
  const ast::Ident &target = assign.targets[0];
  const ast::OpDecl::Result *result = findResult(target.name);
  if (!result) {
    DiagnosticBuilder error = diags.report(target.loc(), diag::UnknownResult).range(target.range)
                              << op.name.name << target.name;
    std::vector<Candidate> candidates;
    for (const ast::OpDecl::Result &known : op.results)
      candidates.push_back(known.name ? Candidate{known.name.name, known.name.loc()} : Candidate{"result", SMLoc()});
    suggestNearest(error, target.name, target.range, candidates);
    return;
  }
  if (op.formula || llvm::is_contained(assigned, result))
    diags.report(target.loc(), diag::Redefinition).range(target.range) << target.name;
  assigned.push_back(result);
  checkResultFormula(assign.value, *result);
}

/// `flops`, `backward flops`, `mask causal`: the words that a clause begins with.
static StringRef getWords(const ast::OpClauseStmt &clause) {
  const char *begin = clause.range.Start.getPointer(), *end = clause.range.End.getPointer();
  return StringRef(begin, end - begin)
      .take_while([](char c) { return llvm::isAlpha(c) || c == '_' || c == ' '; })
      .rtrim();
}

/// One of two would be ignored, where they do not name different things.
void OpChecker::checkClauseOnce(const ast::OpClauseStmt &clause) {
  switch (clause.clause) {
  case Clause::Whole:
  case Clause::Fold:
  case Clause::Linear:
  case Clause::Saves:
  case Clause::Updates:
    return;
  default:
    break;
  }
  for (const ast::Stmt *stmt : op.body) {
    auto *earlier = dyn_cast<ast::OpClauseStmt>(stmt);
    if (earlier == &clause)
      return;
    if (!earlier || earlier->clause != clause.clause)
      continue;
    StringRef word = getWords(clause);
    DiagnosticBuilder error = diags.report(clause.loc(), diag::ClauseTwice).range(clause.range) << op.name.name << word;
    error.note(earlier->loc(), diag::PreviousHere) << word;
    return;
  }
}

/// `causal(s, t)`, `causal(s, t, o)`: two indices and, as the kind takes one, a size.
void OpChecker::checkMask(const ast::OpClauseStmt &clause) {
  struct Kind {
    StringRef name;
    size_t least, most;
    const char *expected;
  };
  static const Kind kinds[] = {
      {"full", 2, 2, "2"}, {"causal", 2, 3, "2 or 3"}, {"window", 3, 3, "3"}, {"blocks", 3, 3, "3"}};
  for (const ast::Expr *argument : clause.arguments.take_front(2)) {
    auto *name = dyn_cast<ast::NameExpr>(argument);
    if (!name || !indices.count(name->name))
      reportUnknownName(name ? name->name.str() : ast::textOf(argument), argument->range, diag::UnknownIndex);
  }
  checkExprs(clause.arguments.drop_front(std::min<size_t>(2, clause.arguments.size())));
  const Kind *kind = llvm::find_if(kinds, [&](const Kind &known) { return known.name == clause.word.name; });
  if (kind == std::end(kinds)) {
    diags.report(clause.word.loc(), diag::UnknownMask).range(clause.word.range) << clause.word.name;
    return;
  }
  size_t count = clause.arguments.size();
  if (count < kind->least || count > kind->most)
    diags.report(clause.loc(), diag::WrongArgumentCount).range(clause.range)
        << clause.word.name << kind->expected << int64_t(count);
}

void OpChecker::checkClause(const ast::OpClauseStmt &clause) {
  checkClauseOnce(clause);
  switch (clause.clause) {
  case Clause::Whole:
  case Clause::Fold:
  case Clause::Scan:
    checkIndexNames(clause.names);
    break;
  case Clause::Mask:
    checkMask(clause);
    break;
  case Clause::Routes:
    checkIndexNames(clause.names);
    checkIndexNames(clause.names2);
    for (ast::Expr *value : {clause.value, clause.value2})
      if (value)
        checkExprs(value);
    return;
  case Clause::Updates:
    checkSaved(clause.names, /*resultsToo=*/false);
    checkIndexNames(clause.names2);
    break;
  case Clause::Saves:
    checkSaved(clause.names, /*resultsToo=*/true);
    break;
  case Clause::Linear:
    checkSaved(clause.names, /*resultsToo=*/false);
    break;
  case Clause::FlopClass:
    if (auto *name = dyn_cast<ast::NameExpr>(clause.value); !name || !isFlopClass(name->name))
      diags.report(clause.value->loc(), diag::UnknownFlopClass).range(clause.value->range) << ast::textOf(clause.value);
    return;
  default:
    break;
  }
  if (clause.extraType) {
    checkDType(clause.extraType->dtype);
    IndexSet own;
    collectIndices(*clause.extraType, own);
    for (const auto &[name, range] : own)
      if (!indices.count(name))
        reportUnknownName(name, range, diag::UnknownIndex);
  }
  if (clause.formula) {
    auto savesIt = [&](const ast::Stmt *stmt) {
      auto *other = dyn_cast<ast::OpClauseStmt>(stmt);
      return other && other != &clause && (other->clause == Clause::Saves || other->formula) &&
             other->extraName.name == clause.extraName.name;
    };
    if (llvm::any_of(op.body, savesIt) || findResult(clause.extraName.name) ||
        llvm::any_of(op.params, [&](const ast::Param &param) { return param.name.name == clause.extraName.name; }))
      diags.report(clause.extraName.loc(), diag::Redefinition).range(clause.extraName.range) << clause.extraName.name;
    IndexSet own;
    collectIndices(*clause.extraType, own);
    checkReduced(diags, checkOpFormula(*this, diags, indices, clause.formula), own);
  }
  for (const ast::Expr *cost : {clause.value, clause.value2})
    if (cost)
      checkCost(cost);
}

void OpChecker::checkIndexNames(ArrayRef<ast::Ident> names) {
  for (const ast::Ident &name : names)
    if (!indices.count(name.name))
      reportUnknownName(name.name, name.range, diag::UnknownIndex);
}

void OpChecker::checkSaved(ArrayRef<ast::Ident> names, bool resultsToo) {
  for (const ast::Ident &name : names) {
    Symbol *symbol = use(name.name);
    bool isOperand = symbol && symbol->kind == SymbolKind::Tensor;
    if (!isOperand && !(resultsToo && findResult(name.name)))
      reportUnknown(name.name, name.range);
  }
}

/// FLOPs and bytes are sizes over the indices, `volume` and, under a mask, `area`.
void OpChecker::checkCost(const ast::Expr *cost) {
  walk(cost, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    if (!name || indices.count(name->name) || name->name == "volume" ||
        (name->name == "area" && hasClause({Clause::Mask})))
      return;
    checkName(name->name, name->range);
  });
}

bool OpChecker::resolve(StringRef name, SMRange range, IndexSet &accessed) {
  Symbol *symbol = use(name);
  auto found = accessedBy.find(name);
  if (symbol && found != accessedBy.end())
    // Where it is mentioned is where a missing reduction is noticed.
    for (const auto &entry : found->second) {
      accessed.insert({entry.first, range});
      if (routed.count(entry.first))
        for (const auto &other : routing)
          accessed.insert({other.first, range});
    }
  return symbol;
}

bool OpChecker::isCallable(StringRef name) {
  return use(name) || llvm::isa_and_nonnull<ast::OpDecl>(program.lookup(file, name));
}

void OpChecker::reportUnknownName(StringRef name, SMRange range, diag::Message<diag::Text> id) {
  if (id != diag::UnknownIndex)
    return reportUnknown(name, range, id);
  std::vector<Candidate> candidates;
  for (const auto &[index, place] : indices)
    candidates.push_back({index, place.Start});
  DiagnosticBuilder error = diags.report(range.Start, id).range(range) << name;
  suggestNearest(error, name, range, candidates);
}

/// `flops = 2 * B;`: the dims of a model are no names of an op.
void OpChecker::explainUnknown(DiagnosticBuilder &error, StringRef) {
  std::string names;
  for (const auto &[index, place] : indices)
    names += ((names.empty() ? "" : ", ") + index).str();
  if (!names.empty())
    error.note(SMLoc(), diag::NameInstead)
        << "an op knows its indices, " + names + ", its parameters, and 'volume', the elements of its result";
}

void stage::sema::checkOp(const Program &program, const ast::File &file, const ast::OpDecl &op) {
  OpChecker(program, file, op).check();
}
