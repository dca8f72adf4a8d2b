//===- BindStep.cpp - the step of a job, bound ----------------------------===//
//
// Binds `train(B = 128, S = 8Ki, microbatch = 1, optimizer = adamw)` or `infer(...)`: its dims, the microbatches into
// which the ranks that share a batch cut it, and the optimizer or the tokens that are sampled. The strategy is bound
// before, since its mesh says how many ranks share a batch.
//
//===----------------------------------------------------------------------===//
#include "BindInference.h"
#include "BindStrategy.h"
#include "CheckDefines.h"
#include "JobBinder.h"
#include "Meanings.h"
#include "StepHints.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

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

/// Masks and formulas tell positions apart as real numbers, and pairs of them are counted.
constexpr int64_t mostPositions = 1'000'000'000'000'000;

/// A dim of the step; with the batch comes its microbatch.
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
