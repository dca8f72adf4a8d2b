//===- BindJob.cpp - a job with every name bound --------------------------===//
//
// Order: what can be overridden is known once the job's model, step and strategy are
// chosen; the strategy comes before the step, which needs the ranks that share the
// batch; the schedule comes last, as it needs the number of microbatches. Parts that
// do not need one that failed are still bound, so that all faults are seen.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "CheckDefines.h"
#include "Extends.h"
#include "JobBinder.h"
#include "Meanings.h"
#include "stage/Sema/Builtins.h"
#include "stage/Symbolic/SizeMessages.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

bool JobBinder::selectJob(StringRef name) {
  job.decl = findJob(program, name, diags);
  return job.decl && overrides.isValid();
}

static std::string listNames(ArrayRef<Candidate> candidates) {
  std::string names;
  for (const Candidate &candidate : candidates)
    names += ((names.empty() ? "" : ", ") + candidate.name).str();
  return names;
}

std::vector<const ast::JobDecl *> stage::sema::getJobs(const Program &program) {
  std::vector<const ast::JobDecl *> jobs;
  for (const ast::Decl *decl : program.getMain()->decls)
    if (auto *job = dyn_cast<ast::JobDecl>(decl))
      jobs.push_back(job);
  return jobs;
}

const ast::JobDecl *stage::sema::findJob(const Program &program, StringRef name, DiagnosticEngine &diags) {
  const ast::File &file = *program.getMain();
  std::vector<const ast::JobDecl *> jobs = getJobs(program);
  std::vector<Candidate> candidates;
  for (const ast::JobDecl *job : jobs) {
    if (job->name.name == name || (name.empty() && jobs.size() == 1))
      return job;
    candidates.push_back({job->name.name, job->name.loc()});
  }
  if (jobs.empty()) {
    diags.report(SMLoc(), diag::MissingJob) << file.path;
    return nullptr;
  }
  if (name.empty()) {
    DiagnosticBuilder error = diags.report(SMLoc(), diag::SeveralJobs) << file.path << int64_t(jobs.size());
    for (const Candidate &candidate : candidates)
      error.note(candidate.loc, diag::PreviousHere) << candidate.name;
  } else {
    DiagnosticBuilder error = diags.report(SMLoc(), diag::UnknownJob) << file.path << name << listNames(candidates);
    if (const Candidate *nearest = findNearest(name, candidates))
      error.note(nearest->loc, diag::DidYouMean) << nearest->name;
  }
  return nullptr;
}

void JobBinder::readEntries() {
  for (const ast::JobDecl *link : getChain(program, *job.decl)) {
    for (const ast::EntryStmt *entry : link->entries)
      entries[entry->name.name] = {entry->value, &program.getFile(*link)};
    for (const ast::SearchStmt *search : link->searches) {
      gpus = Entry();
      for (const ast::SearchStmt::Values &values : search->values)
        if (values.name.name == gpusWord)
          gpus = {values.values, &program.getFile(*link)};
    }
  }
  std::vector<Overrides::Target> targets;
  bool hasSearch =
      llvm::any_of(getChain(program, *job.decl), [](const ast::JobDecl *link) { return !link->searches.empty(); });
  if (hasSearch)
    targets.push_back({jobWord, gpusWord, gpus.value ? gpus.value->loc() : job.decl->name.loc()});
  for (StringRef word : jobEntries)
    targets.push_back({jobWord, word, job.decl->name.loc()});
  overrides.resolve(targets, /*isLast=*/false);
  if (!gpus.value && overrides.find(jobWord, strategyWord)) // which may use the name as that of the job may
    overrides.resolve(Overrides::Target{jobWord, gpusWord, job.decl->name.loc()}, /*isLast=*/false);
  for (StringRef word : jobEntries)
    if (const ast::Expr *value = overrides.find(jobWord, word))
      entries[word] = {value, program.getMain()};
  if (const ast::Expr *value = overrides.find(jobWord, gpusWord))
    gpus = {value, program.getMain()};
}

/// `dp = gpus / tp`: the ranks that the search of the job says; of several numbers the first.
bool JobBinder::bindGpus(ParamBinder &params) {
  if (!gpus.value)
    return true;
  const ast::Expr *value = gpus.value;
  if (auto *list = dyn_cast<ast::ListExpr>(value); list && !list->elements.empty())
    value = list->elements.front();
  std::optional<int64_t> number = evaluator.evaluateInteger(value, Environment(*gpus.file), "'gpus'");
  if (number)
    params.define(gpusWord, *number);
  return number.has_value();
}

std::optional<CTValue> JobBinder::evaluateEntry(StringRef name) {
  const Entry &entry = entries[name];
  if (overrides.find(jobWord, name) == entry.value && !checkDefinedWord(program, *entry.value, name, diags))
    return std::nullopt;
  return evaluator.evaluate(entry.value, Environment(*entry.file));
}

/// What an entry calls. The arguments wait, as they may refer to other parameters of the callee.
std::optional<JobCall> JobBinder::readCall(const Entry &entry) {
  Environment env(*entry.file);
  JobCall result;
  result.file = entry.file;
  result.expr = entry.value;
  auto *call = dyn_cast<ast::CallExpr>(entry.value);
  bool isPlain = call && !call->hasIndices && llvm::isa<ast::NameExpr>(call->callee);
  std::optional<CTValue> callee = evaluator.evaluate(isPlain ? call->callee : entry.value, env);
  if (!callee)
    return std::nullopt;
  result.callee = *callee;
  if (isPlain)
    for (const ast::Argument &argument : call->args)
      result.arguments.push_back({argument.name, argument.value, CTValue(), argument.value->range});
  else
    for (const NamedValue &argument : callee->getArguments())
      result.arguments.push_back({argument.name, nullptr, argument.value, argument.range});
  return result;
}

/// The declaration that an entry names, which may be left out. False after a report.
template <typename Kind> bool JobBinder::chooseDecl(StringRef word, StringRef what, const Kind *&chosen) {
  if (!entries.count(word))
    return true;
  std::optional<CTValue> value = evaluateEntry(word);
  chosen = value ? expectDecl<Kind>(*value, entries[word].value->range, what) : nullptr;
  return chosen;
}

/// Evaluates which model, step and strategy the job names, as far as overrides need it.
bool JobBinder::chooseParts() {
  bool ok = true;
  for (StringRef word : {modelWord, stepWord, precisionWord})
    if (!entries.count(word)) {
      diags.report(job.decl->name.loc(), diag::EntryMissing).range(job.decl->name.range)
          << job.decl->name.name << word << getExample(word);
      ok = false;
    }
  if (!ok)
    return false;

  SMRange modelRange = entries[modelWord].value->range;
  std::optional<JobCall> call = readCall(entries[modelWord]);
  const ast::ModuleDecl *decl = call ? expectDecl<ast::ModuleDecl>(call->callee, modelRange, "a model") : nullptr;
  if (decl && !decl->isModel) {
    diags.report(modelRange.Start, diag::WrongDeclaration).range(modelRange) << decl->name.name << "model";
    decl = nullptr;
  }
  job.model = decl;
  job.modelRange = modelRange;
  if (decl)
    model = std::move(*call);

  const ast::Expr *stepValue = entries[stepWord].value;
  job.stepRange = stepValue->range;
  step = dyn_cast<ast::CallExpr>(stepValue);
  auto *kind = step ? dyn_cast<ast::NameExpr>(step->callee) : nullptr;
  if (!kind || !llvm::is_contained(stepKinds, kind->name)) {
    diags.report(stepValue->loc(), diag::StepExpected).range(stepValue->range);
    return false;
  }
  job.isTraining = kind->name == trainWord;

  if (!chooseDecl(machineWord, "a machine", machine) || !chooseDecl(runtimeWord, "a runtime", runtime))
    return false;
  if (runtime && !machine) {
    SMRange range = entries[runtimeWord].value->range;
    diags.report(range.Start, diag::RuntimeWithoutMachine).range(range) << job.decl->name.name << runtime->name.name;
    return false;
  }
  if (entries.count(strategyWord)) {
    Entry entry = entries[strategyWord];
    if (auto *with = dyn_cast<ast::WithExpr>(entry.value)) {
      addedParts = with->parts;
      entry.value = with->base;
    }
    std::optional<JobCall> chosen = readCall(entry);
    SMRange range = entry.value->range;
    if (chosen && chosen->callee.isNone() && addedParts.empty()) // `none`: one rank
      return job.model;
    job.strategy.decl = chosen ? expectDecl<ast::StrategyDecl>(chosen->callee, range, "a strategy") : nullptr;
    if (!job.strategy.decl)
      return false;
    strategy = std::move(*chosen);
  }
  return job.model;
}

void JobBinder::resolveOverrides() {
  std::vector<Overrides::Target> targets;
  for (const ast::Ident &dim : getStepDims())
    targets.push_back({stepWord, dim.name, dim.loc()});
  for (StringRef word : getStepWords())
    targets.push_back({stepWord, word, step->loc()});
  for (const ast::Argument &argument : step->args) // `-D T=64..74`
    if (auto *steps = dyn_cast<ast::ForArgExpr>(argument.value); steps && !job.isTraining)
      targets.push_back({stepWord, steps->variable.name, steps->variable.loc()});
  for (const ast::Param &param : job.model->params)
    targets.push_back({configWord, param.name.name, param.name.loc()});
  if (job.strategy.decl)
    for (const ast::Param &param : job.strategy.decl->params)
      targets.push_back({strategyWord, param.name.name, param.name.loc()});
  auto addEntries = [&](StringRef owner, const ast::Decl &decl, llvm::function_ref<std::vector<std::string>()> list) {
    auto [known, isNew] = program.getBindings().entryNames.try_emplace(&decl);
    if (isNew)
      for (const std::string &name : list())
        known->second.push_back(program.getContext().copy(StringRef(name)));
    for (StringRef name : known->second)
      targets.push_back({owner, name, decl.name.loc()});
  };
  if (machine)
    addEntries(machineWord, *machine, [&] { return listMachineEntries(program, *machine); });
  if (runtime)
    addEntries(runtimeWord, *runtime, [] { return listRuntimeEntries(); });
  overrides.resolve(targets, /*isLast=*/true);
}

/// `megatron(2, 8, 4)`: whose order the reader knows is not that of the strategy.
void JobBinder::warnOfPositions(const ast::StrategyDecl &decl) {
  constexpr size_t fewParams = 6;
  std::string text;
  size_t count = 0;
  for (const JobArgument &argument : strategy.arguments)
    if (!argument.name && count < decl.params.size())
      text += (count ? ", " : "") + (decl.params[count].name.name.str() + " = ") + getText(argument.range), ++count;
  if (count > 1 && decl.params.size() > fewParams)
    diags.report(strategy.arguments.front().range.Start, diag::PositionalDegrees)
            .range({strategy.arguments.front().range.Start, strategy.arguments[count - 1].range.End})
        << decl.name.name << decl.params.size() << "'" + decl.name.name.str() + "(" + text + ")'";
}

bool JobBinder::bindStrategyEntry() {
  const ast::StrategyDecl *decl = job.strategy.decl;
  if (!decl)
    return true;
  UserPlace userPlace(diags, entries[strategyWord].value->loc());
  SMRange range = strategy.expr->range;
  for (const ast::Param &param : decl->params)
    if (param.scalarKind.name == axesKind) {
      diags.report(range.Start, diag::PartAsStrategy)
          .range(range)
          .with(decl->name.name, param.name.name)
          .note(param.name.loc(), diag::PreviousHere)
          .with(param.name.name);
      return false;
    }
  ParamBinder params(evaluator, *decl, decl->params, range);
  if (!params.give(strategy.arguments, *strategy.file))
    return false;
  warnOfPositions(*decl);
  params.give(overrides, strategyWord);
  if (!checkDefines(program, overrides, strategyWord, decl->params, diags) || !bindGpus(params) || !params.bindAll())
    return false;
  StrategyCall call{decl, params.take(), params.listGiven(), strategy.expr, range, addedParts, strategy.file};
  std::optional<BoundStrategy> bound = bindStrategy(evaluator, {job.environments, job.calls}, call);
  if (!bound)
    return false;
  job.strategy = std::move(*bound);
  return true;
}

bool JobBinder::bindPrecision() {
  std::optional<CTValue> value = evaluateEntry(precisionWord);
  auto *decl =
      value ? expectDecl<ast::PrecisionDecl>(*value, entries[precisionWord].value->range, "a precision") : nullptr;
  if (!decl)
    return false;
  BoundPrecision &precision = job.precision;
  precision.decl = decl;
  ast::Ident *fields[] = {&precision.weight, &precision.activation, &precision.gradient, &precision.master};
  for (const ast::EntryStmt *entry : decl->entries) {
    StringRef word = llvm::cast<ast::NameExpr>(entry->value)->name;
    if (entry->name.name == accumulateWord) {
      precision.separateAccumulation = word == separateWord;
      continue;
    }
    size_t index = llvm::find(precisionTypes, entry->name.name) - std::begin(precisionTypes);
    *fields[index] = {word, entry->value->range};
  }
  return true;
}

/// Binds what an entry of the job names, which may be left out, unless an earlier plan has.
template <typename Bound, typename Bind>
bool JobBinder::bindOnce(std::map<KeptBindings::Key, Kept<Bound>> &kept, StringRef word, const ast::Decl *decl,
                         Bind bindAs, std::optional<Bound> &bound) {
  if (!decl)
    return true;
  SMRange range = entries[word].value->range;
  KeptBindings::Key key = {decl, &sizes};
  for (auto [entry, value] : overrides.listValues(word))
    key.insert(key.end(), {entry.data(), value});
  auto known = kept.find(key);
  if (known == kept.end()) {
    Kept<Bound> made;
    Evaluator own(program, sizes, binding, made.obligations, diags);
    auto find = [&](StringRef entry) { return overrides.find(word, entry); };
    std::optional<Bound> evaluated = bindAs(own, range, find);
    if (!evaluated)
      return false;
    made.bound = std::move(*evaluated);
    known = kept.emplace(std::move(key), std::move(made)).first;
  }
  known->second.repeat(evaluator.getObligations());
  bound = known->second.bound;
  bound->range = range;
  return true;
}

/// Sizes and axes share one space of symbols.
bool JobBinder::checkSymbols() {
  bool ok = true;
  auto check = [&](const NamedValue &value) {
    auto isNamed = [&](const BoundAxis &known) { return known.name.name == value.name.name; };
    auto axis = llvm::find_if(job.strategy.readings, isNamed);
    if (axis == job.strategy.readings.end())
      return;
    diags.report(axis->name.loc(), diag::AxisNamedLikeSize)
        .range(axis->name.range)
        .with(axis->name.name)
        .note(value.name.loc(), diag::PreviousHere)
        .with(value.name.name);
    ok = false;
  };
  llvm::for_each(job.modelArgs, check);
  llvm::for_each(job.stepDims, check);
  auto isOfInference = [&](const NamedValue &value) {
    if (job.isTraining || !llvm::is_contained(inferredDims, value.name.name))
      return;
    diags.report(value.name.loc(), diag::InferredName).range(value.name.range) << value.name.name;
    ok = false;
  };
  llvm::for_each(job.modelArgs, isOfInference);
  llvm::for_each(job.stepDims, isOfInference);
  return ok;
}

bool JobBinder::bind() {
  readEntries();
  if (!chooseParts())
    return false;
  resolveOverrides();
  if (!overrides.isValid())
    return false;
  evaluator.setModel(job.model);
  evaluator.setPhase({/*decoding=*/false, /*continuing=*/false, /*inferring=*/!job.isTraining});
  bool hasStrategy = bindStrategyEntry();
  evaluator.setPhase({});
  std::optional<std::vector<NamedValue>> args;
  {
    UserPlace userPlace(diags, job.modelRange.Start);
    args = bindModel(evaluator, model, job.modelRange, &overrides, binding, job.strategy, job.namesConstants);
  }
  if (args)
    job.modelArgs = std::move(*args);
  if (hasStrategy)
    splitSharedAxes(job.strategy, job.modelArgs, binding, sizes);
  bool hasPrecision = bindPrecision();
  hasPrecision &= bindOnce(
      program.getBindings().machines, machineWord, machine,
      [&](Evaluator &own, SMRange range, EntryOverride find) {
        return bindMachine(own, program, *machine, range, find, overrides.getEnvironment());
      },
      job.machine);
  hasPrecision &= bindOnce(
      program.getBindings().runtimes, runtimeWord, runtime,
      [&](Evaluator &own, SMRange range, EntryOverride find) {
        return bindRuntime(own, program, *runtime, range, find, overrides.getEnvironment());
      },
      job.runtime);
  if (job.runtime && !job.isTraining)
    job.runtime->stepHost = 0; // what the host does for an iteration is said of ops that run once (R24.5)
  if (!hasStrategy)
    return false; // the step's microbatches would be wrong
  UserPlace userPlace(diags, entries.count(strategyWord) ? entries[strategyWord].value->loc() : SMLoc());
  bool ok = bindStep() && hasPrecision && args.has_value();
  return ok && checkSymbols() && bindPipeline(evaluator, job.strategy, job.microbatches, job.isTraining);
}

std::optional<BoundJob> stage::sema::bindJob(Program &program, StringRef jobName, ArrayRef<Override> defines,
                                             SizeContext &sizes, SizeBinding &binding, Obligations &obligations,
                                             DiagnosticEngine &diags, bool namesConstants,
                                             std::optional<int64_t> batchRanks) {
  clearOrigins(sizes);
  JobBinder binder(program, defines, sizes, binding, obligations, diags, batchRanks);
  binder.job.namesConstants = namesConstants;
  if (!binder.selectJob(jobName) || !binder.bind())
    return std::nullopt;
  return std::move(binder.job);
}
