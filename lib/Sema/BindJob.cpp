//===- BindJob.cpp - a job with every name bound --------------------------===//
//
// Order: what can be overridden is known once the job's model, step and strategy are
// chosen; the strategy comes before the step, which needs the ranks that share the
// batch; the schedule comes last, as it needs the number of microbatches. Parts that
// do not need one that failed are still bound, so that all faults are seen.
//
//===----------------------------------------------------------------------===//
#include "BindInference.h"
#include "BindModel.h"
#include "BindStrategy.h"
#include "CheckDefines.h"
#include "Extends.h"
#include "JobWords.h"
#include "Meanings.h"
#include "StepHints.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/KeptBindings.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Symbolic/SizeMessages.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class JobBinder {
public:
  JobBinder(Program &program, ArrayRef<Override> defines, SizeContext &sizes, SizeBinding &binding,
            Obligations &obligations, DiagnosticEngine &diags, std::optional<int64_t> batchRanks)
      : program(program), sizes(sizes), binding(binding), diags(diags), knownBatchRanks(batchRanks),
        evaluator(program, sizes, binding, obligations, diags), overrides(program, defines, diags) {}

  bool selectJob(StringRef name);
  bool bind();
  BoundJob job;

private:
  /// An entry of the job in effect, or what a -D puts in its place.
  struct Entry {
    const ast::Expr *value = nullptr;
    const ast::File *file = nullptr;
  };

  void readEntries();
  bool chooseParts();
  void resolveOverrides();
  std::optional<CTValue> evaluateEntry(StringRef name);
  std::optional<JobCall> readCall(const Entry &entry);
  bool bindDraft(const ast::Expr &value, const Environment &env);
  bool bindStrategyEntry();
  void warnOfPositions(const ast::StrategyDecl &decl);
  bool bindStep();
  bool bindBatch(const ast::Ident &dim, std::optional<int64_t> given, SMRange range);
  bool bindLengthsOfStep(const ast::Expr &value, const Environment &env, bool &servesRequests,
                         std::vector<int64_t> &lengths);
  bool bindStepDim(const ast::Ident &dim, const ast::Expr *value, const Environment &env);
  bool bindOptimizer(const ast::Expr *value, const Environment &env);
  bool bindClip(const ast::Expr &expr, const Environment &env);
  bool bindPrecision();
  template <typename Bound, typename Bind>
  bool bindOnce(std::map<KeptBindings::Key, Kept<Bound>> &kept, StringRef word, const ast::Decl *decl, Bind bindAs,
                std::optional<Bound> &bound);
  bool checkSymbols();
  std::vector<ast::Ident> getStepDims() const;
  ArrayRef<StringRef> getStepWords() const;
  template <typename Kind> const Kind *expectDecl(const CTValue &value, SMRange range, StringRef what);
  template <typename Kind> bool chooseDecl(StringRef word, StringRef what, const Kind *&chosen);

  Program &program;
  SizeContext &sizes;
  SizeBinding &binding;
  DiagnosticEngine &diags;
  std::optional<int64_t> knownBatchRanks; ///< From an earlier attempt.
  SMRange microbatchRange;                ///< Invalid: the step gives none.
  Evaluator evaluator;
  Overrides overrides;
  bool bindGpus(ParamBinder &params);

  llvm::StringMap<Entry> entries;
  Entry gpus; ///< What the search of the job says of them; no value: nothing.
  JobCall model, strategy;
  const ast::MachineDecl *machine = nullptr;
  const ast::RuntimeDecl *runtime = nullptr;
  ArrayRef<ast::Expr *> addedParts; ///< `with ...`
  const ast::CallExpr *step = nullptr;
};
} // namespace

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

template <typename Kind> const Kind *JobBinder::expectDecl(const CTValue &value, SMRange range, StringRef what) {
  auto *decl = value.isDecl() ? dyn_cast<Kind>(value.getDecl()) : nullptr;
  if (decl)
    return decl;
  DiagnosticBuilder error = diags.report(range.Start, diag::WrongKind).range(range) << what << evaluator.format(value);
  if (value.getKind() == CTValue::Kind::String)
    error.note(SMLoc(), diag::NamesHaveNoQuotes);
  auto *config = value.isDecl() ? dyn_cast<ast::ConfigDecl>(value.getDecl()) : nullptr;
  StringRef kind = what.split(' ').second; // "a model"
  if (config && kind == modelWord)
    error.note(config->name.loc(), diag::ConfigIsForModel) << config->model.name << config->name.name;
  else
    program.suggestOfKind(error, evaluator.format(value), range, kind, program.getFile(*job.decl));
  return nullptr;
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

std::vector<ast::Ident> JobBinder::getStepDims() const {
  std::vector<ast::Ident> dims;
  for (const ast::Stmt *stmt : job.model->body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt))
      if (!dim->value)
        dims.insert(dims.end(), dim->names.begin(), dim->names.end());
  return dims;
}

/// What the step may give beside dims.
ArrayRef<StringRef> JobBinder::getStepWords() const {
  static constexpr StringRef ofTraining[] = {microbatchWord, optimizerWord, clipWord},
                             ofInference[] = {microbatchWord, chunkWord, tokensWord, logitsWord, prefilledWord,
                                              sendWord,       draftWord, acceptWord, sampleWord};
  return job.isTraining ? ArrayRef<StringRef>(ofTraining) : ArrayRef<StringRef>(ofInference);
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

/// A dim of the step, other than the batch, which comes with its microbatch.
/// Masks and formulas tell positions apart as real numbers, and pairs of them are counted.
constexpr int64_t mostPositions = 1'000'000'000'000'000;

bool JobBinder::bindStepDim(const ast::Ident &dim, const ast::Expr *value, const Environment &env) {
  std::string what = ("'" + dim.name + "'").str();
  if (auto *word = dyn_cast<ast::NameExpr>(value);
      word && overrides.find(stepWord, dim.name) == value && !program.lookup(*program.getMain(), word->name)) {
    diags.report(word->loc(), diag::UnknownName)
        .range(word->range)
        .with(word->name)
        .note(dim.loc(), diag::ParameterIsNumber)
        .with(dim.name, dim.name == batchDim ? "8" : "1024");
    return false;
  }
  std::optional<int64_t> number = evaluator.evaluateInteger(value, env, what);
  if (number && *number < 1)
    diags.report(value->loc(), diag::ValueNotPositive).range(value->range) << what << *number;
  if (!number || *number < 1)
    return false;
  if (dim.name == sequenceDim && *number > mostPositions) {
    diags.report(value->loc(), diag::SequenceTooLong).range(value->range) << mostPositions << *number;
    return false;
  }
  job.stepDims.push_back({dim, CTValue::size(sizes.symbol(dim.name)), value->range});
  if (dim.name == batchDim)
    return bindBatch(dim, *number, value->range);
  binding.bind(dim.name, *number);
  return true;
}

/// `'B = 6' or 'B = 8'`: the multiples beside a number.
static std::string suggestMultiples(StringRef name, int64_t number, int64_t factor) {
  int64_t below = number / factor * factor, above = 0;
  __builtin_add_overflow(below, factor, &above);
  std::string text;
  for (int64_t multiple : {below, above})
    if (multiple > 0)
      text += (text.empty() ? "'" : " or '") + name.str() + " = " + std::to_string(multiple) + "'";
  return text;
}

/// The ranks that hold different sequences are those along the axes that split the batch of the inputs: what a rule
/// for the dim says; without one, what a rule for a pattern or an annotation of an input says, if it means an input.
bool JobBinder::bindBatch(const ast::Ident &dim, std::optional<int64_t> given, SMRange range) {
  std::string qualified = (job.model->name.name + "." + dim.name).str();
  auto isBatch = [&](StringRef name) { return name == dim.name || name == qualified; };
  const ast::AxisListSyntax *axes = nullptr;
  const Environment *env = nullptr; // of the rule that has them
  RuleOrigin origin;
  bool isShared = false; // rules that contradict each other are found when they are applied
  auto visit = [&](const ast::ShardStmt &shard, const BoundRule &rule, bool isForDim) {
    for (const ast::ShardStmt::Item &item : shard.items) {
      if (llvm::none_of(item.dims, [&](const ast::Ident &name) { return isBatch(name.name); }))
        continue;
      job.batchRanksAreGuessed |= !isForDim;
      if (axes && !rule.call->getOrigin().winsOver(origin))
        continue;
      axes = &item.axes;
      env = rule.env;
      origin = rule.call->getOrigin();
      isShared = item.dims.size() > 1;
    }
  };
  for (const BoundRule &bound : job.strategy.rules)
    if (auto *shard = dyn_cast<ast::ShardStmt>(bound.stmt))
      visit(*shard, bound, /*isForDim=*/true);
  for (const BoundRule &bound : job.strategy.rules)
    if (auto *at = dyn_cast<ast::AtStmt>(bound.stmt)) {
      job.batchRanksAreGuessed |= !at->pattern.dims.empty(); // it may call the batch by another name
      for (const ast::Stmt *rule : at->rules)
        if (auto *shard = dyn_cast<ast::ShardStmt>(rule))
          visit(*shard, bound, /*isForDim=*/false);
    }
  for (const ast::Stmt *stmt : job.model->body)
    if (auto *input = dyn_cast<ast::TensorDeclStmt>(stmt); input && input->declKind == ast::TensorDeclKind::Input)
      for (const ast::ShapeDim &inputDim : input->type->dims) {
        auto *name = llvm::dyn_cast_or_null<ast::NameExpr>(inputDim.size);
        job.batchRanksAreGuessed |= inputDim.hasAxes;
        if (inputDim.hasAxes && !axes && name && isBatch(name->name))
          axes = &inputDim.axes;
      }
  if (isShared) {
    diags.report(axes->range.Start, diag::SemaNotSupported).range(axes->range)
        << "sharing axes between the batch and other dims";
    return false;
  }
  job.batchDim = dim.name;
  if (knownBatchRanks)
    job.batchRanks = *knownBatchRanks;
  else if (axes)
    for (StringRef axis : job.strategy.expand(*axes, env))
      job.batchRanks *= job.strategy.findAxis(axis)->size;
  int64_t ranks = job.batchRanks, batch = given.value_or(ranks);
  if (!job.microbatch) { // of inference: all at once, or a batch for each stage of a pipeline
    int64_t stages = job.strategy.getNumStages();
    job.microbatch = std::max<int64_t>(batch % (ranks * stages) ? batch / ranks : batch / ranks / stages, 1);
  }
  job.globalBatch = batch;
  __int128 perMicrobatch = __int128(job.microbatch) * ranks;
  if (batch % perMicrobatch != 0) {
    __int128 factor = std::min<__int128>(perMicrobatch, std::numeric_limits<int64_t>::max() / 2);
    // The ranks divide the batch: its microbatch is the one at fault, if it is given.
    SMRange at = job.microbatchIsGiven && batch % ranks == 0 && microbatchRange.isValid() ? microbatchRange : range;
    std::string others;
    constexpr int64_t mostTried = 1 << 16;
    int64_t most = std::min({job.microbatch, batch / ranks, mostTried});
    for (int64_t fewer = most; at.Start != range.Start && fewer > 0; --fewer)
      if (batch / ranks % fewer == 0) {
        others = " or 'microbatch = " + std::to_string(fewer) + "'";
        break;
      }
    DiagnosticBuilder error = diags.report(at.Start, diag::MicrobatchDoesNotDivide).range(at)
                              << batch << job.microbatch << ranks << int64_t(factor)
                              << suggestMultiples(dim.name, batch, int64_t(factor)) + others;
    if (axes)
      error.note(axes->range.Start, diag::BatchShardedHere) << dim.name << ranks;
    return false;
  }
  job.microbatches = static_cast<int64_t>(batch / perMicrobatch);
  binding.bind(dim.name, static_cast<int64_t>(perMicrobatch));
  return true;
}

/// Products of two stay in 64 bits.
constexpr int64_t maxSequenceLength = 100'000'000;

/// The model that proposes tokens; its parameters are symbols of their own.
bool JobBinder::bindDraft(const ast::Expr &value, const Environment &env) {
  std::optional<JobCall> call = readCall(Entry{&value, &env.getFile()});
  if (call && call->callee.isDecl() && llvm::isa<ast::JobDecl>(call->callee.getDecl())) {
    diags.report(value.loc(), diag::SemaNotSupported).range(value.range)
        << "a draft model with a mesh of its own; 'place draft = first;' in the 'pipeline' of the strategy gives it "
           "ranks of its own";
    return false;
  }
  const ast::ModuleDecl *decl = call ? expectDecl<ast::ModuleDecl>(call->callee, value.range, "a model") : nullptr;
  if (!decl)
    return false;
  if (!decl->isModel) {
    diags.report(value.loc(), diag::WrongDeclaration).range(value.range) << decl->name.name << "model";
    return false;
  }
  StringRef refused = !job.inference->lengths.empty() ? "a draft model for sequences of different lengths"
                      : job.inference->prefilled ? "a draft model where another job fills the caches, which has none"
                                                 : "";
  if (!refused.empty()) {
    diags.report(value.loc(), diag::SemaNotSupported).range(value.range) << refused;
    return false;
  }
  for (const ast::Stmt *stmt : decl->body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt); dim && !dim->value)
      for (const ast::Ident &name : dim->names)
        if (name.name != batchDim && name.name != sequenceDim) {
          diags.report(value.loc(), diag::DraftDim).range(value.range) << decl->name.name << name.name;
          return false;
        }
  UserPlace userPlace(diags, value.loc());
  std::optional<std::vector<NamedValue>> args = bindModel(evaluator, *call, value.range, /*overrides=*/nullptr, binding,
                                                          job.strategy, job.namesConstants, "draft.");
  if (!args)
    return false;
  splitSharedAxes(job.strategy, *args, binding, sizes); // it may have other heads of keys and values
  job.inference->draft = decl;
  job.inference->draftArgs = std::move(*args);
  job.inference->draftRange = value.range;
  return true;
}

/// What S is of inference: `requests`, a list, or a number, which is bound as other dims are.
bool JobBinder::bindLengthsOfStep(const ast::Expr &value, const Environment &env, bool &servesRequests,
                                  std::vector<int64_t> &lengths) {
  if (llvm::isa<ast::NumberExpr>(value))
    return true;
  std::optional<CTValue> given = evaluator.evaluate(&value, env);
  if (!given)
    return false;
  servesRequests = given->getKind() == CTValue::Kind::Word && given->getText() == requestsWord;
  if (servesRequests || given->isNumber())
    return true;
  bool isGood = given->getKind() == CTValue::Kind::List && !given->getElements().empty();
  if (isGood)
    for (const CTValue &element : given->getElements()) {
      // What `floor` makes of a real number is whole, too.
      std::optional<double> number = element.isNumber() ? evaluator.getDouble(element, value.range) : std::nullopt;
      isGood &= number && *number >= 1 && *number <= maxSequenceLength && *number == std::floor(*number);
      lengths.push_back(isGood ? int64_t(*number) : 0);
    }
  if (!isGood)
    diags.report(value.loc(), diag::BadLengths).range(value.range) << evaluator.format(*given);
  return isGood;
}

bool JobBinder::bindStep() {
  Environment env(*entries[stepWord].file);
  std::vector<ast::Ident> dims = getStepDims();
  bool ok = true;
  llvm::StringMap<const ast::Argument *> given;
  const ast::ForArgExpr *steps = nullptr;
  for (const ast::Argument &argument : step->args) {
    if (auto *range = dyn_cast<ast::ForArgExpr>(argument.value)) {
      if (job.isTraining)
        diags.report(range->loc(), diag::StepsOfTraining).range(range->range) << range->variable.name;
      else if (steps)
        diags.report(range->loc(), diag::StepsTwice).range(range->range);
      ok &= !job.isTraining && !steps;
      steps = range;
      continue;
    }
    if (!argument.name) {
      diags.report(argument.value->loc(), diag::StepArgumentUnnamed).range(argument.value->range);
      ok = false;
      continue;
    }
    StringRef name = argument.name.name;
    bool isDim = llvm::any_of(dims, [&](const ast::Ident &dim) { return dim.name == name; });
    if (auto *lengths = dyn_cast<ast::RangeExpr>(argument.value); !isDim && !job.isTraining && lengths && name == "T") {
      SMRange written(argument.name.loc(), argument.value->range.End);
      diags.report(written.Start, diag::StepRange).range(written) << name << textOf(lengths);
      ok = false;
    } else if (!isDim && !llvm::is_contained(getStepWords(), name)) {
      std::vector<Candidate> candidates;
      for (StringRef word : getStepWords())
        candidates.push_back({word, SMLoc()});
      for (const ast::Ident &dim : dims)
        candidates.push_back({dim.name, dim.loc()});
      DiagnosticBuilder error = diags.report(argument.name.loc(), diag::UnknownStepValue).range(argument.name.range)
                                << job.model->name.name << name << (job.isTraining ? "train" : "infer");
      std::vector<StringRef> dimNames;
      for (const ast::Ident &dim : dims)
        dimNames.push_back(dim.name);
      if (StringRef hint = findStepHint(name, job.isTraining, dimNames); !hint.empty())
        error.note(SMLoc(), diag::StepHint) << hint;
      else
        suggestMeant(error, program, name, argument.name.range, candidates);
      ok = false;
    } else if (!given.try_emplace(name, &argument).second) {
      diags.report(argument.name.loc(), diag::ArgumentTwice).range(argument.name.range) << name;
      ok = false;
    }
  }
  if (!ok)
    return false;

  for (const ast::Argument &argument : step->args) {
    auto *word = dyn_cast<ast::NameExpr>(argument.value);
    if (!word || word->name != requestsWord || (!job.isTraining && argument.name.name == sequenceDim))
      continue;
    if (job.isTraining)
      diags.report(step->loc(), diag::RequestsTrain).range(step->callee->range).range(word->range);
    else
      diags.report(word->loc(), diag::NotAnInteger)
          .range(word->range)
          .with("'" + argument.name.name + "'", "a word")
          .note(SMLoc(), diag::StepHint)
          .with("requests of a file are served by 'infer(S = requests)'; the file says their number and lengths");
    return false;
  }

  using Value = std::pair<const ast::Expr *, const Environment *>;
  auto find = [&](StringRef name) {
    if (const ast::Expr *value = overrides.find(stepWord, name))
      return Value(value, &overrides.getEnvironment());
    auto found = given.find(name);
    return found == given.end() ? Value() : Value(found->second->value, &env);
  };
  // `S = requests`: there a file says all else. `S = [100, 2000]`: one for each sequence.
  auto [length, ofLength] = find(sequenceDim);
  bool servesRequests = false;
  std::vector<int64_t> lengths;
  if (length && !job.isTraining && !bindLengthsOfStep(*length, *ofLength, servesRequests, lengths))
    return false;
  bool isPacked = servesRequests || !lengths.empty();
  for (StringRef word :
       {batchDim, microbatchWord, chunkWord, tokensWord, logitsWord, prefilledWord, sendWord, draftWord, acceptWord})
    if (const ast::Expr *value = servesRequests ? find(word).first : nullptr) {
      diags.report(value->loc(), diag::RequestsSay).range(value->range) << word;
      return false;
    }
  if (servesRequests && steps) {
    diags.report(steps->loc(), diag::RequestsSay).range(steps->range) << "for";
    return false;
  }
  bool hasBatch = llvm::any_of(dims, [](const ast::Ident &dim) { return dim.name == batchDim; });
  job.microbatch = job.isTraining;
  if (auto [value, where] = find(microbatchWord); value) {
    job.microbatchIsGiven = true;
    microbatchRange = value->range;
    std::optional<int64_t> number = evaluator.evaluateInteger(value, *where, "'microbatch'");
    if (number && *number < 1)
      diags.report(value->loc(), diag::ValueNotPositive).range(value->range) << "'microbatch'" << *number;
    else if (number && !hasBatch)
      diags.report(value->loc(), diag::MicrobatchUnused).range(value->range) << job.model->name.name << batchDim;
    ok = number && *number > 0 && hasBatch;
    job.microbatch = ok ? *number : 1;
  }
  if (auto [value, where] = find(optimizerWord); value && job.isTraining)
    ok &= bindOptimizer(value, *where);
  else if (job.isTraining)
    diags.report(step->loc(), diag::NoOptimizer).range(step->range);
  if (auto [value, where] = find(clipWord); value && job.isTraining)
    ok &= bindClip(*value, *where);
  int64_t microbatch = 0; ///< Sequences of a batch where lengths differ; 0: nobody says.
  for (const ast::Ident &dim : dims) {
    auto [value, where] = find(dim.name);
    if (isPacked && dim.name == batchDim) { // all of a unit's sequences are one row of positions
      std::optional<int64_t> number = value ? evaluator.evaluateInteger(value, *where, "'B'") : std::nullopt;
      if (number && *number != int64_t(lengths.size()))
        diags.report(value->loc(), diag::LengthsAndBatch).range(value->range) << int64_t(lengths.size()) << *number;
      if (value && number != int64_t(lengths.size())) {
        ok = false;
        continue;
      }
      microbatch = std::exchange(job.microbatch, 0);
      job.stepDims.push_back({dim, CTValue::size(sizes.symbol(dim.name)), step->range});
      ok &= bindBatch(dim, std::nullopt, step->range);
      continue;
    }
    if (value && !(isPacked && dim.name == sequenceDim)) {
      ok &= bindStepDim(dim, value, *where);
      continue;
    }
    if (!job.isTraining && dim.name == sequenceDim) { // then nothing is prefilled
      job.stepDims.push_back({dim, CTValue::size(sizes.symbol(dim.name)), step->range});
      continue;
    }
    diags.report(step->loc(), diag::StepDimMissing)
        .range(step->range)
        .with(dim.name, dim.name == batchDim ? "8" : "1024", job.isTraining ? trainWord : inferWord)
        .note(dim.loc(), diag::PreviousHere)
        .with(dim.name);
    ok = false;
  }
  if (job.isTraining || !ok)
    return ok;
  for (StringRef needed : {batchDim, sequenceDim})
    if (llvm::none_of(dims, [&](const ast::Ident &dim) { return dim.name == needed; })) {
      diags.report(step->loc(), diag::InferredBatch).range(step->range) << job.model->name.name << needed;
      return false;
    }
  auto bindSample = [&] {
    auto [value, where] = find(sampleWord);
    std::optional<JobCall> call = value ? readCall(Entry{value, &where->getFile()}) : std::nullopt;
    return !value || (call && bindSampler(evaluator, *call, value->range, *job.inference));
  };
  if (servesRequests) {
    job.inference.emplace().servesRequests = true;
    return bindSample();
  }
  StepValue ofSteps(steps ? steps->range_ : nullptr, &env);
  if (const ast::Expr *given = steps ? overrides.find(stepWord, steps->variable.name) : nullptr)
    ofSteps = {given, &overrides.getEnvironment()};
  ok = bindInference(evaluator, *step, ofSteps, isPacked ? std::nullopt : binding.lookup(sequenceDim), lengths, find,
                     job);
  if (!ok || !bindSample())
    return false;
  if (auto [value, where] = find(draftWord); value && !bindDraft(*value, *where))
    return false;
  if (isPacked && !bindLengths(evaluator, *step, microbatch ? std::optional(microbatch) : std::nullopt,
                               job.strategy.getNumStages(), job))
    return false;
  if (int64_t stages = job.strategy.getNumStages();
      !isPacked && job.inference->decodes() && !job.inference->sampler && job.microbatches < stages) {
    diags.report(step->loc(), diag::BatchesInFlight).range(step->range) << job.microbatches << stages;
    return false;
  }
  binding.bind(sequenceDim, getUnitLength(*job.inference, job.strategy.getNumRanks()));
  return true;
}

bool JobBinder::bindClip(const ast::Expr &expr, const Environment &env) {
  std::optional<CTValue> value = evaluator.evaluate(&expr, env);
  if (!value || value->isNone())
    return value.has_value();
  std::optional<double> norm = evaluator.evaluateReal(&expr, env);
  if (!norm)
    return false;
  if (!(*norm > 0)) {
    diags.report(expr.loc(), diag::BadClip).range(expr.range) << evaluator.format(*value);
    return false;
  }
  job.clip = *norm;
  return true;
}

bool JobBinder::bindOptimizer(const ast::Expr *expr, const Environment &env) {
  if (overrides.find(stepWord, optimizerWord) == expr && !checkDefinedWord(program, *expr, optimizerWord, diags))
    return false;
  std::optional<CTValue> value = evaluator.evaluate(expr, env);
  if (!value)
    return false;
  if (value->isNone())
    return true;
  auto *decl = expectDecl<ast::OptimizerDecl>(*value, expr->range, "an optimizer");
  auto matched =
      decl ? matchArguments(decl->params, value->getArguments(), decl->name.name, expr->range, diags) : std::nullopt;
  if (!matched)
    return false;
  BoundOptimizer optimizer;
  optimizer.decl = decl;
  Environment scope(program.getFile(*decl));
  for (size_t i = 0; i != decl->params.size(); ++i) {
    const ast::Param &param = decl->params[i];
    const NamedValue *given = (*matched)[i];
    std::optional<CTValue> argument = given ? evaluator.convert(given->value, param, scope, given->range)
                                            : evaluator.evaluateParam(param, nullptr, scope, scope);
    if (!argument)
      return false;
    scope.define(param.name.name, std::move(*argument));
  }
  scope.define(volumeWord, CTValue::size(sizes.symbol(volumeWord)));
  for (const ast::Stmt *stmt : decl->body) {
    if (auto *states = dyn_cast<ast::StateStmt>(stmt)) {
      for (const ast::Ident &name : states->names)
        optimizer.states.push_back({name, states->dtype.name});
      continue;
    }
    std::optional<Size> flops = evaluator.evaluateSize(llvm::cast<ast::EntryStmt>(stmt)->value, scope);
    if (!flops)
      return false;
    optimizer.flops = *flops;
  }
  job.optimizer = std::move(optimizer);
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
