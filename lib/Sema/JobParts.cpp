//===- JobParts.cpp - what a job names, before it is bound ----------------===//
#include "JobParts.h"
#include "Extends.h"
#include "JobWords.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

template <typename Decl>
static JobParts::Called<Decl> findCalled(const Program &program, const ast::Expr *expr, const ast::File &file) {
  if (auto *with = dyn_cast<ast::WithExpr>(expr))
    expr = with->base;
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : expr);
  JobParts::Called<Decl> called;
  called.decl = name ? llvm::dyn_cast_or_null<Decl>(program.lookup(file, name->name)) : nullptr;
  called.args = call ? call->args : ArrayRef<ast::Argument>();
  called.file = &file;
  return called;
}

const ast::StrategyDecl *stage::sema::findCalledStrategy(const Program &program, const ast::Expr *expr,
                                                         const ast::File &file) {
  return findCalled<ast::StrategyDecl>(program, expr, file).decl;
}

std::optional<std::vector<const ast::Expr *>> stage::sema::listStrategyCalls(const ast::SearchStmt::Values &entry) {
  if (entry.isOne)
    return std::vector<const ast::Expr *>{entry.values};
  auto *list = dyn_cast<ast::ListExpr>(entry.values);
  return list ? std::optional(std::vector<const ast::Expr *>(list->elements.begin(), list->elements.end()))
              : std::nullopt;
}

JobParts::JobParts(const Program &program, const ast::JobDecl &job, const SearchedStrategy &tried) {
  for (const ast::JobDecl *link : getChain(program, job)) {
    const ast::File &file = program.getFile(*link);
    for (const ast::EntryStmt *entry : link->entries)
      entries[entry->name.name] = {entry, &file};
    if (!link->searches.empty()) {
      search = link->searches.front();
      searchFile = &file;
    }
  }
  if (tried.value) {
    ast::EntryStmt entry;
    entry.kind = ast::NodeKind::EntryStmt;
    entry.range = tried.value->range;
    entry.name = {strategyWord, tried.value->range};
    entry.value = const_cast<ast::Expr *>(tried.value);
    entries[strategyWord] = {program.getContext().create(entry), tried.file};
  }
  if (auto [entry, file] = entries.lookup(strategyWord); entry)
    strategy = findCalled<ast::StrategyDecl>(program, entry->value, *file);
  if (auto [entry, file] = entries.lookup(modelWord); entry)
    model = findCalled<ast::ModuleDecl>(program, entry->value, *file);
  if (auto [entry, file] = entries.lookup(stepWord); entry) {
    step = dyn_cast<ast::CallExpr>(entry->value);
    stepFile = file;
  }
  if (strategy.decl)
    for (const ast::Stmt *stmt : strategy.decl->body)
      if (auto *own = dyn_cast<ast::SearchStmt>(stmt))
        ownSearch = own;
}

std::vector<Candidate> JobParts::listNames() const {
  std::vector<Candidate> names = {{gpusWord, SMLoc()}, {microbatchWord, SMLoc()}};
  if (strategy.decl)
    for (const ast::Param &param : strategy.decl->params)
      names.push_back({param.name.name, param.name.loc()});
  if (!model.decl)
    return names;
  for (const ast::Param &param : model.decl->params)
    names.push_back({param.name.name, param.name.loc()});
  for (const ast::Stmt *stmt : model.decl->body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt); dim && !dim->value)
      for (const ast::Ident &name : dim->names)
        names.push_back({name.name, name.loc()});
  return names;
}

StringRef JobParts::findOwner(StringRef name) const {
  auto isNamed = [&](const ast::Param &param) { return param.name.name == name; };
  if (name == gpusWord)
    return jobWord;
  if (strategy.decl && llvm::any_of(strategy.decl->params, isNamed))
    return strategyWord;
  static constexpr StringRef words[] = {microbatchWord, optimizerWord, clipWord, chunkWord, tokensWord};
  if (llvm::is_contained(words, name))
    return stepWord;
  if (!model.decl)
    return "";
  for (const ast::Stmt *stmt : model.decl->body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt); dim && !dim->value)
      if (llvm::any_of(dim->names, [&](const ast::Ident &ident) { return ident.name == name; }))
        return stepWord;
  return llvm::any_of(model.decl->params, isNamed) ? configWord : "";
}

bool stage::sema::mayBeList(const ast::Expr *expr) {
  return llvm::isa<ast::ListExpr, ast::ListForExpr, ast::RangeExpr, ast::CallExpr, ast::NameExpr, ast::IfExpr>(expr);
}

StringRef stage::sema::findSearchOwner(const Program &program, const ast::JobDecl &job, StringRef name,
                                       ArrayRef<SearchedStrategy> strategies) {
  if (strategies.empty())
    return JobParts(program, job).findOwner(name);
  for (const SearchedStrategy &strategy : strategies)
    if (StringRef owner = JobParts(program, job, strategy).findOwner(name); !owner.empty())
      return owner;
  return "";
}

const ast::Expr *stage::sema::findGpus(const Program &program, const ast::JobDecl &job) {
  const ast::Expr *gpus = nullptr;
  for (const ast::JobDecl *link : getChain(program, job))
    for (const ast::SearchStmt *search : link->searches) {
      gpus = nullptr;
      for (const ast::SearchStmt::Values &values : search->values)
        if (values.name.name == gpusWord)
          gpus = values.values;
    }
  return gpus;
}
