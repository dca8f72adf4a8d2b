//===- CheckSearches.cpp - the search of a job ----------------------------===//
//
// Names and objectives are checked before anything is evaluated; values are when a search begins.
//
//===----------------------------------------------------------------------===//
#include "JobParts.h"
#include "JobWords.h"
#include "Meanings.h"
#include "NameChecker.h"
#include "stage/Sema/Search.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::sema;
using ast::textOf;
using llvm::dyn_cast;

namespace {
class SearchChecker : public NameChecker {
public:
  SearchChecker(const Program &program, const ast::File &file, const ast::JobDecl &job, const ast::SearchStmt &search)
      : NameChecker(program, file) {
    for (const ast::SearchStmt::Values &entry : search.values)
      if (entry.name.name == strategyWord)
        if (std::optional<std::vector<const ast::Expr *>> calls = listStrategyCalls(entry))
          for (const ast::Expr *call : *calls)
            parts.emplace_back(program, job, SearchedStrategy{call, &file, "", ""});
    if (parts.empty())
      parts.emplace_back(program, job);
  }

  void check(const ast::SearchStmt &search);

private:
  void defineNames();
  void defineRepeats(ArrayRef<ast::Stmt *> body);
  void checkValues(const ast::SearchStmt::Values &entry);
  void checkObjective(const ast::Expr *expr);
  void checkStrategies(const ast::SearchStmt::Values &entry);
  void explainUnknown(DiagnosticBuilder &error, StringRef name) override;
  std::vector<Candidate> listNames() const {
    std::vector<Candidate> names;
    for (const JobParts &each : parts)
      for (const Candidate &name : each.listNames())
        names.push_back(name);
    return names;
  }
  void defineOnce(StringRef name) {
    if (!find(name))
      define(SymbolKind::Scalar, {name, SMRange()});
  }
  /// A parameter of a strategy with a number as its default, or the number of ranks.
  bool isNumber(StringRef name) const {
    auto hasNumber = [&](const JobParts &each) {
      return each.strategy.decl && llvm::any_of(each.strategy.decl->params, [&](const auto &param) {
               return param.name.name == name && param.defaultValue && llvm::isa<ast::NumberExpr>(param.defaultValue);
             });
    };
    return name == gpusWord || llvm::any_of(parts, hasNumber);
  }
  std::vector<JobParts> parts; ///< With each of the strategies that are tried.
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
  for (const Candidate &name : listNames())
    defineOnce(name.name);
  for (const SearchRecord &record : getSearchRecords())
    defineOnce(record.name);
  defineOnce(machineWord);
  if (parts.front().model.decl)
    defineRepeats(parts.front().model.decl->body);
}

/// `capacity` is `machine.memory.capacity`.
void SearchChecker::explainUnknown(DiagnosticBuilder &error, StringRef name) {
  StringRef instead = llvm::StringSwitch<StringRef>(name.lower())
                          .Cases("capacity", "memory_capacity", "hbm", "hbm_capacity", "device_memory", "gpu_memory",
                                 "the memory of a device is 'machine.memory.capacity'")
                          .Case("ranks", "the ranks of a level of the network are 'machine.levels[0].ranks', and all "
                                         "ranks of a plan are 'gpus'")
                          .Default("");
  if (!instead.empty())
    error.note(SMLoc(), diag::NameInstead) << instead;
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
  // `max(mfu)`: what is ranked says itself which plans are better.
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *inner = call && !call->args.empty() ? dyn_cast<ast::NameExpr>(call->args[0].value) : name;
  if (!inner)
    return;
  StringRef meant = llvm::StringSwitch<StringRef>(inner->name)
                        .Cases("throughput", "tokens", "speed", "tokens_per_second", "tps", "tokens_per_gpu")
                        .Cases("time", "latency", "step_time", "iteration_time", "duration", "step")
                        .Cases("tflops", "flops", "utilization", "hfu", "efficiency", "mfu")
                        .Cases("peak_memory", "mem", "memory")
                        .Cases("price", "usd", "dollars", "cost")
                        .Cases("communication", "comm", "exposed")
                        .Default("");
  if (meant.empty() && findSearchRecord(inner->name))
    meant = inner->name;
  if (const Candidate *nearest = meant.empty() ? findNearest(inner->name, candidates) : nullptr)
    meant = nearest->name;
  if (!meant.empty()) {
    error.fixIt(expr->range, meant);
    error.note(SMLoc(), diag::DidYouMean) << meant;
  }
}

/// The calls themselves are checked as that of the job is (CheckJobs.cpp).
void SearchChecker::checkStrategies(const ast::SearchStmt::Values &entry) {
  std::optional<std::vector<const ast::Expr *>> calls = listStrategyCalls(entry);
  if (!calls)
    diags.report(entry.values->loc(), diag::WrongKind).range(entry.values->range) << "a list of strategies in brackets"
                                                                                  << "'" + textOf(entry.values) + "'";
  else
    for (const ast::Expr *call : *calls)
      if (!findCalledStrategy(program, call, file))
        diags.report(call->loc(), diag::SearchedStrategy).range(call->range) << textOf(call);
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
  if (name == strategyWord)
    return checkStrategies(entry);
  // What an entry calls may be computed; such names are checked when the job is bound.
  auto lacksName = [&](const JobParts &each) {
    return each.findOwner(name).empty() && each.model.decl && (each.strategy.decl || !each.entries.count(strategyWord));
  };
  if (llvm::all_of(parts, lacksName)) {
    DiagnosticBuilder error = diags.report(entry.name.loc(), diag::SearchedUnknown).range(entry.name.range) << name;
    std::vector<Candidate> known = listNames();
    known.push_back({gpusWord, SMLoc()});
    llvm::SmallVector<StringRef, 8> given;
    for (const ast::Argument &argument : parts.front().strategy.args)
      if (argument.name)
        given.push_back(argument.name.name);
    const ast::StrategyDecl *strategy = parts.front().strategy.decl;
    if (!strategy || !suggestOwner(error, program, strategy->params, entry.name.name, given))
      suggestMeant(error, program, name, entry.name.range, known);
  }
  if (!entry.isOne && !mayBeList(entry.values)) {
    std::string text = textOf(entry.values);
    DiagnosticBuilder error = diags.report(entry.values->loc(), diag::WrongKind).range(entry.values->range)
                              << "a list or a range of values"
                              << "'" + text + "'";
    if (StringRef(text).startswith("(") && StringRef(text).endswith(")"))
      error.note(SMLoc(), diag::NameInstead)
          << "a list stands in brackets: write '[" + text.substr(1, text.size() - 2) + "]'";
  }
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
    SearchChecker(program, file, job, *search).check(*search);
  }
}
