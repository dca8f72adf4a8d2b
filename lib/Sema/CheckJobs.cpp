//===- CheckJobs.cpp - the names of configs, jobs and their like ----------===//
//
// The declarations that are lists of entries. Their values are names and numbers;
// what a job's calls may be given is checked when the job is bound.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "Extends.h"
#include "JobParts.h"
#include "JobWords.h"
#include "Meanings.h"
#include "NameChecker.h"
#include "StepHints.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Sema/Walk.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

static constexpr llvm::StringLiteral scheduleKind = "schedule";

namespace {
class EntryChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::ConfigDecl &config, ExtendsChecker &extends, ConfigNames &configs);
  void check(const ast::JobDecl &job, ExtendsChecker &extends);
  void check(const ast::PrecisionDecl &precision);
  void check(const ast::OptimizerDecl &optimizer);

private:
  const ast::StrategyDecl *checkEntry(const ast::Expr *expr, StringRef entry);
  void checkNameOf(StringRef kind, const ast::NameExpr &name);
  void checkSizes(const ast::ConfigDecl &config, const ast::ModuleDecl &model, ArrayRef<Candidate> params);
  void checkJobEntries(const ast::JobDecl &job);
  bool suggestByValue(DiagnosticBuilder &error, const ast::EntryStmt &entry);
  bool explainParameter(DiagnosticBuilder &error, const ast::JobDecl &job, const ast::EntryStmt &entry);
  bool checkWord(const ast::NameExpr &word, StringRef name, const ast::StrategyDecl &strategy);
  void checkWith(const ast::WithExpr &with, StringRef entry);
  void checkStep(const ast::Expr *expr);
  bool mayMeanBuiltin() const override { return false; } // `fp8` is near to `f8`, which no entry may be
};

std::vector<Candidate> candidates(ArrayRef<StringRef> words) {
  std::vector<Candidate> result;
  for (StringRef word : words)
    result.push_back({word, SMLoc()});
  return result;
}
} // namespace

/// What a config has, in a list that is shared with its base unless there is something new in it.
static ConfigNames::mapped_type getNames(const Program &program, const ast::ConfigDecl &config, ConfigNames &configs) {
  llvm::SmallVector<const ast::ConfigDecl *, 4> chain;
  const ast::ConfigDecl *link = &config;
  for (; link && !configs.count(link); link = getBase(program, *link))
    chain.push_back(link);
  using Names = llvm::MapVector<StringRef, ast::Ident>;
  std::shared_ptr<const Names> names = link ? configs[link] : std::make_shared<const Names>();
  for (const ast::ConfigDecl *next : llvm::reverse(chain)) {
    std::shared_ptr<Names> grown;
    for (const ast::EntryStmt *entry : next->entries)
      if (!names->count(entry->name.name)) {
        if (!grown)
          grown = std::make_shared<Names>(*names);
        grown->insert({entry->name.name, entry->name});
      }
    if (grown)
      names = grown;
    configs[next] = names;
  }
  return names;
}

void EntryChecker::check(const ast::ConfigDecl &config, ExtendsChecker &extends, ConfigNames &configs) {
  auto *model = expectDecl<ast::ModuleDecl>(config.model, "model");
  if (model && !model->isModel)
    reportWrongDecl(config.model, "model", *model);
  ScopeGuard scope(*this);
  auto *base = config.base ? expectDecl<ast::ConfigDecl>(config.base, "config") : nullptr;
  if (base && extends.check(config))
    for (const auto &[name, ident] : *getNames(program, *base, configs))
      define(SymbolKind::Scalar, ident);
  if (model) {
    std::vector<Candidate> params;
    for (const ast::Param &param : model->params)
      params.push_back({param.name.name, param.name.loc()});
    checkSizes(config, *model, params);
  }
  // An entry sees those before it, and those it inherits.
  for (const ast::EntryStmt *entry : config.entries) {
    checkExpr(entry->value);
    if (!find(entry->name.name))
      define(SymbolKind::Scalar, entry->name);
  }
}

void EntryChecker::check(const ast::JobDecl &job, ExtendsChecker &extends) {
  ScopeGuard scope(*this);
  bool ends = !job.base || (expectDecl<ast::JobDecl>(job.base, "job") && extends.check(job));
  checkJobEntries(job);
  // 'stagec plan --gpus=16' may give it.
  bool saysGpus =
      ends && llvm::any_of(getChain(program, job), [](const ast::JobDecl *link) { return !link->searches.empty(); });
  auto checkValue = [&](const ast::Expr *value, StringRef entry) {
    ScopeGuard ofSearch(*this);
    if (saysGpus && entry == strategyWord)
      define(SymbolKind::Scalar, {gpusWord, SMRange()});
    if (auto *with = dyn_cast<ast::WithExpr>(value))
      checkWith(*with, entry);
    else if (entry == stepWord)
      checkStep(value);
    else
      checkEntry(value, entry);
  };
  for (const ast::EntryStmt *entry : job.entries)
    checkValue(entry->value, entry->name.name);
  for (const ast::SearchStmt *search : job.searches)
    for (const ast::SearchStmt::Values &entry : search->values)
      if (entry.name.name == strategyWord)
        for (const ast::Expr *call : listStrategyCalls(entry).value_or(std::vector<const ast::Expr *>()))
          checkValue(call, entry.name.name);
  if (ends)
    checkSearches(program, file, job);
}

/// `strategy = megatron(tp = 8) with recompute_full();`
void EntryChecker::checkWith(const ast::WithExpr &with, StringRef entry) {
  if (entry != strategyWord)
    diags.report(with.loc(), diag::WithOutsideStrategy).range(with.range) << entry;
  ScopeGuard scope(*this);
  const ast::StrategyDecl *strategy = checkEntry(with.base, entry);
  if (strategy)
    for (const ast::Param &param : strategy->params)
      if (!find(param.name.name))
        define(SymbolKind::Scalar, param.name);
  for (const ast::Expr *part : with.parts) {
    auto *call = dyn_cast<ast::CallExpr>(part);
    auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : part);
    const ast::Decl *decl = name ? lookupDecl(name->name, name->range) : nullptr;
    auto *callee = llvm::dyn_cast_or_null<ast::StrategyDecl>(decl);
    if (!callee) {
      DiagnosticBuilder error = diags.report(part->loc(), diag::PartExpected).range(part->range) << textOf(part);
      if (llvm::isa<ast::ListExpr, ast::TupleExpr>(part))
        error.note(SMLoc(), diag::NameInstead) << "each part has a 'with' of its own, as in 's(...) with a() with b()'";
      if (name && !decl && !program.suggestImport(error, name->name, &file))
        suggestNearest(error, name->name, name->range, listStrategies(program, file));
      continue;
    }
    ArrayRef<ast::Argument> args = call ? call->args : ArrayRef<ast::Argument>();
    if (llvm::any_of(callee->body, [](const ast::Stmt *stmt) {
          return llvm::isa<ast::MeshStmt>(stmt);
        })) // it is no part, and reported so where the job is bound
      continue;
    auto matched = matchArguments(callee->params, args, callee->name.name, part->range, diags, &program);
    for (size_t i = 0; matched && i != matched->size(); ++i)
      if ((*matched)[i] && callee->params[i].scalarKind.name != axesKind)
        checkExpr((*matched)[i]->value);
  }
}

/// An argument of a model or strategy may refer to the other parameters. The strategy that is called; null: none is.
const ast::StrategyDecl *EntryChecker::checkEntry(const ast::Expr *expr, StringRef entry) {
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *callee = call && !call->hasIndices ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  const ast::Decl *decl = callee ? program.lookup(file, callee->name) : nullptr;
  ScopeGuard scope(*this);
  auto defineAll = [&](ArrayRef<ast::Param> params) {
    for (const ast::Param &param : params)
      if (!find(param.name.name)) // two of one name were reported where they stand
        define(SymbolKind::Scalar, param.name);
  };
  if (auto *model = llvm::dyn_cast_or_null<ast::ModuleDecl>(decl))
    defineAll(model->params);
  auto *strategy = llvm::dyn_cast_or_null<ast::StrategyDecl>(decl);
  if (strategy)
    defineAll(strategy->params);
  if (!callee) {
    if (auto *name = dyn_cast<ast::NameExpr>(expr))
      checkNameOf(entry, *name);
    else
      checkExpr(expr);
    return nullptr;
  }
  checkNameOf(entry, *callee);
  for (const ast::Argument &argument : call->args) {
    auto *word = dyn_cast<ast::NameExpr>(argument.value);
    if (!strategy || !word || !argument.name || !checkWord(*word, argument.name.name, *strategy))
      checkExpr(argument.value);
  }
  return strategy;
}

/// `recompute = selected`: an unknown word where the parameter says which values it has. False: another case.
bool EntryChecker::checkWord(const ast::NameExpr &word, StringRef name, const ast::StrategyDecl &strategy) {
  auto param = llvm::find_if(strategy.params, [&](const ast::Param &known) { return known.name.name == name; });
  if (param == strategy.params.end() || find(word.name) || program.lookup(file, word.name) || findBuiltin(word.name) ||
      program.isLegalWord(word.name))
    return false;
  if (param->scalarKind.name == scheduleKind) {
    checkNameOf(scheduleKind, word);
    return true;
  }
  bool isTruth = word.name == "True" || word.name == "False";
  auto *number = isTruth ? llvm::dyn_cast_or_null<ast::NumberExpr>(param->defaultValue) : nullptr;
  auto *list = llvm::dyn_cast_or_null<ast::ListExpr>(param->legal);
  if (!list && !number)
    return false;
  DiagnosticBuilder error = diags.report(word.loc(), diag::UnknownName).range(word.range) << word.name;
  if (!list) {
    error.note(param->name.loc(), diag::ParameterIsNumber) << name << textOf(number);
    return true;
  }
  std::vector<Candidate> words;
  for (const ast::Expr *element : list->elements)
    if (auto *known = dyn_cast<ast::NameExpr>(element))
      words.push_back({known->name, SMLoc()});
  error.note(param->name.loc(), diag::ParameterIsOneOf) << name << textOf(list);
  if (findNearest(word.name, words))
    suggestNearest(error, word.name, word.range, words);
  return true;
}

/// A name that means a declaration of a kind, `strategy`: if it means nothing, the nearest one of this kind is
/// suggested.
void EntryChecker::checkNameOf(StringRef kind, const ast::NameExpr &name) {
  if (use(name.name) || lookupDecl(name.name, name.range) || findBuiltin(name.name) || program.isLegalWord(name.name))
    return;
  DiagnosticBuilder error = diags.report(name.loc(), diag::UnknownName).range(name.range) << name.name;
  if (!suggestImportOfKind(error, program, name.name, kind))
    program.suggestOfKind(error, name.name, name.range, kind, file);
}

/// The entries of a config are parameters of its model.
void EntryChecker::checkSizes(const ast::ConfigDecl &config, const ast::ModuleDecl &model, ArrayRef<Candidate> params) {
  std::vector<ast::Ident> names;
  for (const ast::EntryStmt *entry : config.entries) {
    names.push_back(entry->name);
    if (llvm::any_of(params, [&](const Candidate &param) { return param.name == entry->name.name; }))
      continue;
    DiagnosticBuilder error = diags.report(entry->name.loc(), diag::UnknownEntry).range(entry->name.range)
                              << model.name.name << entry->name.name;
    explainArgument(error, &program, model.params, entry->name, textOf(entry->value), {});
  }
  checkEntriesOnce(names);
}

/// `shard = megatron(...)`: what the value is says which entry is meant. False: it is no declaration of this kind.
bool EntryChecker::suggestByValue(DiagnosticBuilder &error, const ast::EntryStmt &entry) {
  auto *call = dyn_cast<ast::CallExpr>(entry.value);
  auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : entry.value);
  if (name && llvm::is_contained(stepKinds, name->name)) {
    error.fixIt(entry.name.range, stepWord);
    error.note(SMLoc(), diag::DidYouMean) << stepWord;
    return true;
  }
  const ast::Decl *decl = name ? program.lookup(file, name->name) : nullptr;
  if (!decl)
    return false;
  auto *model = dyn_cast<ast::ModuleDecl>(decl);
  StringRef meant = model && model->isModel               ? modelWord
                    : llvm::isa<ast::StrategyDecl>(decl)  ? strategyWord
                    : llvm::isa<ast::PrecisionDecl>(decl) ? precisionWord
                    : llvm::isa<ast::MachineDecl>(decl)   ? machineWord
                    : llvm::isa<ast::RuntimeDecl>(decl)   ? runtimeWord
                                                          : StringRef();
  if (meant.empty())
    return false;
  error.fixIt(entry.name.range, meant);
  error.note(SMLoc(), diag::DidYouMean) << meant;
  return true;
}

/// The entries of a job. A parameter of its model stands in the call of the model.
void EntryChecker::checkJobEntries(const ast::JobDecl &job) {
  std::vector<ast::Ident> names;
  for (const ast::EntryStmt *entry : job.entries) {
    names.push_back(entry->name);
    if (llvm::is_contained(jobEntries, entry->name.name))
      continue;
    DiagnosticBuilder error = diags.report(entry->name.loc(), diag::UnknownEntry).range(entry->name.range)
                              << "job" << entry->name.name;
    std::vector<Candidate> known = candidates(jobEntries);
    if (findNearest(entry->name.name, known)) {
      suggestNearest(error, entry->name.name, entry->name.range, known);
      continue;
    }
    if (suggestByValue(error, *entry))
      continue;
    if (explainParameter(error, job, *entry))
      continue;
    if (StringRef hint = findEntryHint("job", entry->name.name); !hint.empty())
      error.note(SMLoc(), diag::NameInstead) << hint;
    else
      suggestNearest(error, entry->name.name, entry->name.range, known);
  }
  checkEntriesOnce(names);
}

/// `D = 32` in a job: a parameter of its model or strategy.
bool EntryChecker::explainParameter(DiagnosticBuilder &error, const ast::JobDecl &job, const ast::EntryStmt &entry) {
  for (const ast::JobDecl *link : llvm::reverse(getChain(program, job)))
    for (const ast::EntryStmt *other : link->entries) {
      auto *call = dyn_cast<ast::CallExpr>(other->value);
      auto *name = dyn_cast<ast::NameExpr>(call ? call->callee : other->value);
      const ast::Decl *decl = name ? program.lookup(file, name->name) : nullptr;
      auto isMeant = [&](const ast::Param &param) { return param.name.name == entry.name.name; };
      if (!decl || !llvm::any_of(ast::getParams(*decl), isMeant))
        continue;
      error.note(other->loc(), diag::ArgumentOfEntry)
          << entry.name.name << decl->name.name << other->name.name << textOf(entry.value);
      return true;
    }
  return false;
}

/// `train(...)` is no name of a declaration.
void EntryChecker::checkStep(const ast::Expr *expr) {
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *callee = call ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (!callee || !llvm::is_contained(stepKinds, callee->name)) {
    diags.report(expr->loc(), diag::StepExpected).range(expr->range);
    return;
  }
  ScopeGuard scope(*this);
  for (const ast::Argument &argument : call->args)
    if (auto *loop = dyn_cast<ast::ForArgExpr>(argument.value))
      define(SymbolKind::Scalar, loop->variable);
  for (const ast::Argument &argument : call->args) {
    ScopeGuard inSteps(*this); // where a prefill ends they begin
    if (llvm::isa<ast::ForArgExpr>(argument.value)) {
      auto isSequence = [](const ast::Argument &other) { return other.name && other.name.name == sequenceDim; };
      auto sequence = llvm::find_if(call->args, isSequence);
      // `prompt = 64` is reported as what it is, and 'S' is then no second fault.
      if (sequence == call->args.end())
        sequence = llvm::find_if(call->args, [](const ast::Argument &other) {
          return other.name && !findStepHint(other.name.name, /*isTraining=*/false, {sequenceDim}).empty();
        });
      if (sequence != call->args.end())
        define(SymbolKind::Scalar, {sequenceDim, sequence->name.range});
    }
    StringRef word = argument.name ? argument.name.name : StringRef();
    StringRef kind = word == optimizerWord   ? optimizerWord
                     : word == sampleWord    ? "module"
                     : word == draftWord     ? modelWord
                     : word == prefilledWord ? jobWord
                                             : StringRef();
    if (auto *name = dyn_cast<ast::NameExpr>(argument.value); name && !kind.empty())
      checkNameOf(kind, *name);
    else
      checkExpr(argument.value);
  }
}

void EntryChecker::check(const ast::PrecisionDecl &precision) {
  std::vector<Candidate> known = candidates(precisionTypes);
  known.push_back({accumulateWord, SMLoc()});
  checkEntryNames(precision.entries, "precision", known);
  for (const ast::EntryStmt *entry : precision.entries) {
    auto *name = dyn_cast<ast::NameExpr>(entry->value);
    if (entry->name.name == accumulateWord) {
      if (!name || (name->name != fusedWord && name->name != separateWord))
        diags.report(entry->value->loc(), diag::WrongKind).range(entry->value->range)
            << "'fused' or 'separate'" << (name ? "'" + name->name.str() + "'" : "an expression");
    } else if (name && isDTypeName(name->name) && !isFloatName(name->name))
      diags.report(name->loc(), diag::WrongKind).range(name->range) << "a floating-point type"
                                                                    << "'" + name->name + "'";
    else if (name)
      checkDType({name->name, name->range});
    else
      diags.report(entry->value->loc(), diag::WrongKind).range(entry->value->range) << "an element type"
                                                                                    << "an expression";
  }
  bool isUnknown = llvm::any_of(precision.entries, [&](const ast::EntryStmt *entry) {
    return llvm::none_of(known, [&](const Candidate &each) { return each.name == entry->name.name; });
  });
  for (StringRef word : precisionTypes)
    if (!isUnknown &&
        llvm::none_of(precision.entries, [&](const ast::EntryStmt *entry) { return entry->name.name == word; }))
      diags.report(precision.name.loc(), diag::EntryMissing).range(precision.name.range)
          << precision.name.name << word << (word == "weight" || word == "activation" ? "bf16" : "f32");
}

void EntryChecker::check(const ast::OptimizerDecl &optimizer) {
  ScopeGuard scope(*this);
  checkParams(optimizer.params, /*mustBeUsed=*/true);
  std::vector<ast::EntryStmt *> entries;
  std::vector<ast::Ident> states;
  for (ast::Stmt *stmt : optimizer.body) {
    if (auto *state = dyn_cast<ast::StateStmt>(stmt)) {
      checkDType(state->dtype);
      states.insert(states.end(), state->names.begin(), state->names.end());
      continue;
    }
    auto *entry = llvm::cast<ast::EntryStmt>(stmt);
    entries.push_back(entry);
    ScopeGuard costs(*this);
    if (!find(volumeWord))
      define(SymbolKind::Scalar, {volumeWord, SMRange()});
    if (entry->name.name == flopsWord)
      checkExpr(entry->value);
  }
  checkEntriesOnce(states);
  checkEntryNames(entries, "optimizer", candidates({flopsWord}));
  if (entries.empty())
    diags.report(optimizer.name.loc(), diag::EntryMissing).range(optimizer.name.range)
        << optimizer.name.name << flopsWord << "14 * volume";
}

void stage::sema::checkConfig(const Program &program, const ast::File &file, const ast::ConfigDecl &config,
                              ExtendsChecker &extends, ConfigNames &configs) {
  EntryChecker(program, file).check(config, extends, configs);
}
void stage::sema::checkJob(const Program &program, const ast::File &file, const ast::JobDecl &job,
                           ExtendsChecker &extends) {
  EntryChecker(program, file).check(job, extends);
}
void stage::sema::checkPrecision(const Program &program, const ast::File &file, const ast::PrecisionDecl &precision) {
  EntryChecker(program, file).check(precision);
}
void stage::sema::checkOptimizer(const Program &program, const ast::File &file, const ast::OptimizerDecl &optimizer) {
  EntryChecker(program, file).check(optimizer);
}
