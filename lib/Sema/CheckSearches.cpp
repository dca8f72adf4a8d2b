//===- CheckSearches.cpp - the search of a job ----------------------------===//
//
// Names and objectives are checked before anything is evaluated; values are when a search begins.
//
//===----------------------------------------------------------------------===//
#include "JobParts.h"
#include "JobWords.h"
#include "NameChecker.h"
#include "stage/Sema/Search.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;
using ast::textOf;
using llvm::dyn_cast;

namespace {
class SearchChecker : public NameChecker {
public:
  SearchChecker(const Program &program, const ast::File &file, const ast::JobDecl &job)
      : NameChecker(program, file), parts(program, job) {}

  void check(const ast::SearchStmt &search);

private:
  void defineNames();
  void defineRepeats(ArrayRef<ast::Stmt *> body);
  void checkValues(const ast::SearchStmt::Values &entry);
  void checkObjective(const ast::Expr *expr);
  void defineOnce(StringRef name) {
    if (!find(name))
      define(SymbolKind::Scalar, {name, SMRange()});
  }
  /// A parameter of the strategy with a number as its default, or the number of ranks.
  bool isNumber(StringRef name) const {
    return name == gpusWord ||
           (parts.strategy.decl && llvm::any_of(parts.strategy.decl->params, [&](const auto &param) {
              return param.name.name == name && param.defaultValue && llvm::isa<ast::NumberExpr>(param.defaultValue);
            }));
  }
  JobParts parts;
  unsigned numObjectives = 0;
};
} // namespace

/// Names of repeats stand for the numbers of their iterations.
void SearchChecker::defineRepeats(ArrayRef<ast::Stmt *> body) {
  for (const ast::Stmt *stmt : body) {
    if (auto *repeat = dyn_cast<ast::RepeatStmt>(stmt)) {
      defineOnce(repeat->name.name);
      defineRepeats(repeat->body);
    } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
      defineRepeats(choice->thenBody);
      defineRepeats(choice->elseBody);
    }
  }
}

void SearchChecker::defineNames() {
  for (const Candidate &name : parts.listNames())
    defineOnce(name.name);
  for (const SearchRecord &record : getSearchRecords())
    defineOnce(record.name);
  defineOnce(machineWord);
  if (parts.model.decl)
    defineRepeats(parts.model.decl->body);
}

void SearchChecker::checkObjective(const ast::Expr *expr) {
  ++numObjectives;
  auto *name = dyn_cast<ast::NameExpr>(expr);
  if (name && findSearchRecord(name->name))
    return;
  std::vector<Candidate> candidates;
  std::vector<StringRef> names;
  for (const SearchRecord &record : getSearchRecords()) {
    candidates.push_back({record.name, SMLoc()});
    names.push_back(record.name);
  }
  DiagnosticBuilder error = diags.report(expr->loc(), diag::UnknownObjective).range(expr->range)
                            << textOf(expr) << llvm::join(names, ", ");
  if (name)
    suggestNearest(error, name->name, name->range, candidates);
}

void SearchChecker::checkValues(const ast::SearchStmt::Values &entry) {
  StringRef name = entry.name.name;
  if (name == objectiveWord || name == paretoWord) {
    auto *list = dyn_cast<ast::ListExpr>(entry.values);
    bool isRight = entry.isOne && (name == paretoWord) == (list != nullptr) && (!list || list->elements.size() == 2);
    if (!isRight || numObjectives) {
      diags.report(entry.name.loc(), diag::ObjectiveTwice).range(entry.name.range);
      return;
    }
    if (!list)
      return checkObjective(entry.values);
    for (const ast::Expr *element : list->elements)
      checkObjective(element);
    return;
  }
  // What an entry calls may be computed; such names are checked when the job is bound.
  if (parts.findOwner(name).empty() && parts.model.decl &&
      (parts.strategy.decl || !parts.entries.count(strategyWord))) {
    DiagnosticBuilder error = diags.report(entry.name.loc(), diag::SearchedUnknown).range(entry.name.range) << name;
    suggestNearest(error, name, entry.name.range, parts.listNames());
  }
  if (!entry.isOne && !mayBeList(entry.values))
    diags.report(entry.values->loc(), diag::WrongKind).range(entry.values->range) << "a list or a range of values"
                                                                                  << "'" + textOf(entry.values) + "'";
  if (auto *list = dyn_cast<ast::ListExpr>(entry.values); list && entry.isOne && isNumber(name))
    diags.report(list->loc(), diag::ListForOne).range(list->range) << name << textOf(list);
  if (!entry.isOne)
    checkShortRange(entry.values, name);
  checkExpr(entry.values);
}

void SearchChecker::check(const ast::SearchStmt &search) {
  ScopeGuard scope(*this);
  defineNames();
  std::vector<ast::Ident> names;
  for (const ast::SearchStmt::Values &entry : search.values) {
    names.push_back(entry.name);
    checkValues(entry);
  }
  checkEntriesOnce(names);
  for (const ast::Stmt *require : search.requires_)
    checkRequire(*llvm::cast<ast::RequireStmt>(require));
}

void stage::sema::checkSearches(const Program &program, const ast::File &file, const ast::JobDecl &job) {
  for (const ast::SearchStmt *search : job.searches) {
    if (search != job.searches.front()) {
      program.getDiags().report(search->loc(), diag::JobSearchTwice).range(search->range);
      continue;
    }
    SearchChecker(program, file, job).check(*search);
  }
}
