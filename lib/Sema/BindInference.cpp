//===- BindInference.cpp - the values of `infer(...)` ---------------------===//
//
// Problem: inference is not one step of one size.
//
//   infer(B = 64, S = 4Ki, chunk = 1Ki, for T in 4Ki..5Ki)
//
//   prefill   four units per batch, of 1,024 positions each
//   decode    1,024 steps: with 4,096 positions in the caches, with 4,097, ...
//
// Without S the caches are filled when the first step begins; without `for` nothing is
// decoded. `tokens = k` adds k positions in a step, as verifying k drafted tokens does:
// T goes from a to b by k.
//
//   infer(S = [100, 2000, 300], for T in 0..50)
//
// Each sequence has a length of its own; units take positions of several, and T counts from the
// end of each prompt.
//
//   infer(S = requests)
//
// The sequences are those of requests, a few of which run at a time: units take positions of
// several, and which they are a simulated server says (serveRequests).
//
//===----------------------------------------------------------------------===//
#include "BindInference.h"
#include "JobWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Support/Table.h"
#include <numeric>

using namespace stage;
using namespace stage::sema;

/// With more, lists of units no longer are the small part of a program.
constexpr int64_t maxSteps = 1'000'000;

int64_t BoundInference::getRoom() const {
  if (isPacked())
    return served ? served->room : 0; // before requests are served there are no units
  if (draft)
    return listRounds().back().begin + countStep();
  return decodes() ? begin + (end - begin + tokens - 1) / tokens * tokens : length;
}

std::vector<BoundInference::Round> BoundInference::listRounds() const {
  std::vector<Round> rounds;
  __int128 proposed = 0, accepted = 0; // so far
  for (Round round{begin, 0}; round.begin < end;) {
    rounds.push_back(round);
    proposed += tokens;
    int64_t now = int64_t(proposed * acceptance.num / acceptance.den - accepted);
    accepted += now;
    round = {round.begin + now + 1, now == tokens};
  }
  return rounds;
}

/// A positive integer; nothing after an error.
static std::optional<int64_t> evaluatePositive(Evaluator &evaluator, StepValue value, StringRef word) {
  std::string what = ("'" + word + "'").str();
  std::optional<int64_t> number = evaluator.evaluateInteger(value.first, *value.second, what);
  if (number && *number < 1) {
    evaluator.getDiags().report(value.first->loc(), diag::ValueNotPositive).range(value.first->range)
        << what << *number;
    return std::nullopt;
  }
  return number;
}

static bool bindLogits(Evaluator &evaluator, StepValue value, BoundInference &inference) {
  std::optional<CTValue> word = evaluator.evaluate(value.first, *value.second);
  if (!word)
    return false;
  std::string text = evaluator.format(*word);
  bool isWord = word->getKind() == CTValue::Kind::Word && (text == lastWord || text == allWord);
  if (!isWord)
    evaluator.getDiags().report(value.first->loc(), diag::BadLogits).range(value.first->range) << text;
  inference.allLogits = text == allWord;
  return isWord;
}

/// `prefilled = job`, and `send`, which says when that one sends its caches.
static bool bindPrefilled(Evaluator &evaluator, StepValue job, StepValue send, bool hasSteps,
                          BoundInference &inference) {
  DiagnosticEngine &diags = evaluator.getDiags();
  if (!job.first && !send.first)
    return true;
  if (!job.first) {
    diags.report(send.first->loc(), diag::SendOfNothing).range(send.first->range);
    return false;
  }
  std::optional<CTValue> named = evaluator.evaluate(job.first, *job.second);
  std::optional<CTValue> word = send.first ? evaluator.evaluate(send.first, *send.second) : std::nullopt;
  if (!named || (send.first && !word))
    return false;
  inference.prefilled = named->isDecl() ? llvm::dyn_cast<ast::JobDecl>(named->getDecl()) : nullptr;
  inference.prefilledRange = job.first->range;
  if (!inference.prefilled) {
    diags.report(job.first->loc(), diag::WrongKind).range(job.first->range) << "a job" << evaluator.format(*named);
    return false;
  }
  std::string when = word ? evaluator.format(*word) : byLayerWord.str();
  if (when != byLayerWord && when != atEndWord) {
    diags.report(send.first->loc(), diag::BadSend).range(send.first->range) << byLayerWord << atEndWord << when;
    return false;
  }
  inference.sendsAtEnd = when == atEndWord;
  if (inference.length || !hasSteps) {
    diags.report(job.first->loc(), diag::PrefilledTwice).range(job.first->range)
        << sequenceDim << inference.prefilled->name.name;
    return false;
  }
  return true;
}

/// They may be counted from where the prefill ends: `S..S + 1000`.
static bool bindSteps(Evaluator &evaluator, const ast::Expr &steps, const Environment &outer,
                      BoundInference &inference) {
  Environment env(outer);
  DiagnosticEngine &diags = evaluator.getDiags();
  auto *range = llvm::dyn_cast<ast::RangeExpr>(&steps);
  if (!range) {
    diags.report(steps.loc(), diag::StepsExpected).range(steps.range);
    return false;
  }
  if (inference.length && inference.lengths.empty())
    env.define(sequenceDim, CTValue::integer(inference.length));
  std::optional<int64_t> begin = evaluator.evaluateInteger(range->begin, env, "the first step"),
                         end = evaluator.evaluateInteger(range->end, env, "the end of the steps");
  if (!begin || !end)
    return false;
  bool countsFromPrompts = !inference.lengths.empty();
  int64_t least = inference.length && !countsFromPrompts ? 1 : 0; // without prefill a sequence may begin with nothing
  if (*begin == *end) {
    diags.report(range->loc(), diag::NoDecodeStep).range(range->range) << *begin << *end << *begin + 1;
    return false;
  }
  bool isElsewhere = !countsFromPrompts && inference.length && *begin != inference.length;
  if (!isElsewhere && (*begin < least || *begin > *end || (*end - *begin) / inference.tokens > maxSteps)) {
    diags.report(range->loc(), diag::BadDecodeSteps).range(range->range) << *begin << *end << maxSteps << least;
    return false;
  }
  if (countsFromPrompts && *begin) {
    diags.report(range->begin->loc(), diag::StepsBehindPrompts).range(range->begin->range) << *begin;
    return false;
  }
  if (isElsewhere) {
    diags.report(range->begin->loc(), diag::StepsBeginElsewhere).range(range->begin->range)
        << *begin << inference.length << sequenceDim << (*end > *begin ? *end - *begin : 1);
    return false;
  }
  inference.begin = *begin;
  inference.end = *end;
  return true;
}

/// The share of proposals that is accepted; who proposes is bound later.
static bool bindAcceptance(Evaluator &evaluator, llvm::function_ref<StepValue(StringRef)> find, bool hasSteps,
                           BoundInference &inference) {
  DiagnosticEngine &diags = evaluator.getDiags();
  StepValue draft = find(draftWord), accept = find(acceptWord);
  auto fail = [&](StepValue at, auto diagnostic) {
    diags.report(at.first->loc(), diagnostic).range(at.first->range);
    return false;
  };
  if (!draft.first)
    return !accept.first || fail(accept, diag::AcceptWithoutDraft);
  if (!hasSteps)
    return fail(draft, diag::DraftWithoutSteps);
  if (!accept.first)
    return fail(draft, diag::AcceptMissing);
  std::optional<CTValue> value = evaluator.evaluate(accept.first, *accept.second);
  if (!value)
    return false;
  std::optional<Rational> share = value->isNumber() ? evaluator.getExact(*value) : std::nullopt;
  if (!share || share->num < 0 || share->num > share->den) {
    diags.report(accept.first->loc(), diag::BadAccept).range(accept.first->range) << evaluator.format(*value);
    return false;
  }
  inference.acceptance = *share;
  return true;
}

bool stage::sema::bindInference(Evaluator &evaluator, const ast::CallExpr &step, StepValue steps,
                                std::optional<int64_t> length, std::vector<int64_t> lengths,
                                llvm::function_ref<StepValue(StringRef)> find, BoundJob &job) {
  DiagnosticEngine &diags = evaluator.getDiags();
  BoundInference inference;
  if (!lengths.empty())
    length = *std::max_element(lengths.begin(), lengths.end());
  inference.lengths = std::move(lengths);
  inference.length = inference.chunk = length.value_or(0);
  if (!length && !steps.first) {
    diags.report(step.loc(), diag::NothingInferred).range(step.range) << sequenceDim;
    return false;
  }
  if (StepValue value = find(chunkWord); value.first) {
    std::optional<int64_t> chunk = evaluatePositive(evaluator, value, chunkWord);
    if (!chunk)
      return false;
    if (!length) {
      diags.report(value.first->loc(), diag::ChunkWithoutPrefill).range(value.first->range) << sequenceDim;
      return false;
    }
    inference.mostChunk = *chunk;
    inference.chunk = std::min(*chunk, *length);
  }
  if (StepValue value = find(tokensWord); value.first) {
    std::optional<int64_t> tokens = evaluatePositive(evaluator, value, tokensWord);
    if (!tokens)
      return false;
    if (!steps.first) {
      diags.report(value.first->loc(), diag::TokensWithoutSteps).range(value.first->range);
      return false;
    }
    inference.tokens = *tokens;
  }
  if (StepValue value = find(logitsWord); value.first && !bindLogits(evaluator, value, inference))
    return false;
  if (!bindPrefilled(evaluator, find(prefilledWord), find(sendWord), steps.first, inference))
    return false;
  if (steps.first && !bindSteps(evaluator, *steps.first, *steps.second, inference))
    return false;
  if (!bindAcceptance(evaluator, find, steps.first, inference))
    return false;
  job.inference = inference;
  return true;
}

bool stage::sema::bindSampler(Evaluator &evaluator, const JobCall &call, SMRange range, BoundInference &inference) {
  DiagnosticEngine &diags = evaluator.getDiags();
  auto *decl = call.callee.isDecl() ? llvm::dyn_cast<ast::ModuleDecl>(call.callee.getDecl()) : nullptr;
  auto isTensor = [](const ast::Param &param) { return param.tensor != nullptr; };
  if (!decl || decl->isModel || decl->params.empty() || !isTensor(decl->params.front()) ||
      llvm::count_if(decl->params, isTensor) != 1) {
    diags.report(range.Start, diag::SamplerExpected).range(range) << evaluator.format(call.callee);
    return false;
  }
  if (inference.allLogits) {
    diags.report(range.Start, diag::SampleOfAll).range(range);
    return false;
  }
  UserPlace userPlace(diags, range.Start);
  ParamBinder params(evaluator, *decl, decl->params.drop_front(), range);
  if (!params.give(call.arguments, *call.file) || !params.bindAll())
    return false;
  inference.sampler = decl;
  inference.samplerArgs = params.take();
  inference.samplerRange = range;
  return true;
}

/// Each batch in chunks, of each of its sequences one; then all do the first decode step, the second one, ...
static std::shared_ptr<const ServedUnits> packUnits(const BoundInference &inference) {
  auto packed = std::make_shared<ServedUnits>();
  int64_t steps = (inference.end - inference.begin + inference.tokens - 1) / inference.tokens;
  packed->sequences = int64_t(inference.lengths.size());
  for (int64_t length : inference.lengths)
    packed->room += length + steps * inference.tokens;
  std::vector<ArrayRef<int64_t>> batches;
  for (ArrayRef<int64_t> rest = inference.lengths; !rest.empty(); rest = rest.drop_front(inference.ofBatch))
    batches.push_back(rest.take_front(inference.ofBatch));
  auto getNumber = [&](const int64_t &length) { return &length - inference.lengths.data(); };
  for (ArrayRef<int64_t> batch : batches)
    for (int64_t at = 0; at < *std::max_element(batch.begin(), batch.end()); at += inference.chunk) {
      PackedUnit &unit = packed->units.emplace_back();
      for (const int64_t &length : batch)
        if (at < length)
          unit.sequences.push_back({std::min(inference.chunk, length - at), at, 1, getNumber(length)});
    }
  for (int64_t step = 0; step < steps; ++step)
    for (ArrayRef<int64_t> batch : batches) {
      PackedUnit &unit = packed->units.emplace_back();
      unit.decodes = true;
      for (const int64_t &length : batch)
        unit.sequences.push_back(
            {inference.tokens, length + step * inference.tokens, inference.tokens, getNumber(length)});
    }
  return packed;
}

bool stage::sema::bindLengths(Evaluator &evaluator, const ast::CallExpr &step, std::optional<int64_t> microbatch,
                              int64_t stages, BoundJob &job) {
  DiagnosticEngine &diags = evaluator.getDiags();
  BoundInference &inference = *job.inference;
  int64_t count = int64_t(inference.lengths.size());
  int64_t ofBatch = microbatch.value_or(count % stages ? count : count / stages);
  if (count % ofBatch) {
    diags.report(step.loc(), diag::LengthsInBatches).range(step.range) << count << ofBatch;
    return false;
  }
  if (inference.begin < inference.end && !inference.sampler && count / ofBatch < stages) {
    diags.report(step.loc(), diag::BatchesInFlight).range(step.range) << count / ofBatch << stages;
    return false;
  }
  // What is known of each of them must fit into memory.
  constexpr int64_t mostParts = 1 << 22;
  __int128 parts = __int128(count) * ((inference.end - inference.begin + inference.tokens - 1) / inference.tokens);
  for (int64_t length : inference.lengths)
    parts += (length + inference.chunk - 1) / inference.chunk;
  if (parts > mostParts) {
    diags.report(step.loc(), diag::TooManyParts).range(step.range) << toDecimal(parts) << mostParts;
    return false;
  }
  inference.ofBatch = ofBatch;
  inference.served = packUnits(inference);
  return true;
}

/// Of the parts into which ranks may cut a sequence, those by which chunks of the job divide, and a last one that is
/// shorter, are kept.
static int64_t getDivisor(const BoundInference &inference, int64_t parts) {
  return std::gcd(std::gcd(inference.chunk, inference.length % inference.chunk), parts);
}

int64_t stage::sema::getShortLength(const BoundInference &inference, int64_t length, int64_t parts) {
  if (!inference.isChunked() || inference.isPacked())
    return length;
  int64_t divisor = getDivisor(inference, parts),
          count = (length + divisor - 1) / divisor; // of parts that no chunk cuts
  if (inference.length % inference.chunk == 0)
    count += count % 2;
  else
    count = count <= 5 ? 5 : count == 6 ? 7 : count; // 2 + 2 + 1, and not 2 + 2 + 2
  return count * divisor;
}

/// Two chunks, and a shorter one where the job has one.
static int64_t getShortChunk(const BoundInference &inference, int64_t length, int64_t parts) {
  int64_t divisor = getDivisor(inference, parts), count = length / divisor;
  return (inference.length % inference.chunk == 0 ? count / 2 : (count - 1) / 2) * divisor;
}

void stage::sema::shortenInference(BoundJob &job, int64_t length, SizeBinding &binding) {
  BoundInference &inference = *job.inference;
  if (inference.servesRequests) // those of a proof are small
    return;
  int64_t numSteps =
      inference.decodes() ? (inference.end - inference.begin + inference.tokens - 1) / inference.tokens : 0;
  bool wasChunked = inference.isChunked(), isPacked = inference.isPacked();
  inference.tokens = std::min<int64_t>(inference.tokens, 2);
  if (wasChunked && !isPacked)
    inference.chunk = getShortChunk(inference, length, 2 * job.strategy.getNumRanks() / job.strategy.getNumStages());
  else if (inference.length)
    inference.chunk = length;
  if (inference.length)
    inference.length = length;
  if (numSteps) {
    inference.begin = (inference.length || inference.begin) && !isPacked ? length : 0;
    inference.end = inference.begin + std::min<int64_t>(numSteps, 3) * inference.tokens;
  }
  if (isPacked) {
    int64_t numBatches =
        std::min<int64_t>(inference.lengths.size() / inference.ofBatch, 2 * job.strategy.getNumStages());
    inference.ofBatch = std::min<int64_t>(inference.ofBatch, 2);
    inference.lengths.clear();
    for (int64_t i = 0; i < numBatches * inference.ofBatch; ++i)
      inference.lengths.push_back(length + i * length / 2);
    inference.length = inference.lengths.back();
    inference.chunk = wasChunked ? length / 2 : inference.length;
    inference.served = packUnits(inference);
  }
  binding.bind(sequenceDim, getUnitLength(inference, job.strategy.getNumRanks()));
}

void stage::sema::setSequenceLength(BoundJob &job, int64_t length, SizeBinding &binding) {
  BoundInference &inference = *job.inference;
  if (inference.length) {
    inference.length = length;
    inference.chunk = inference.mostChunk ? std::min(inference.mostChunk, length) : length;
  }
  if (inference.decodes()) {
    inference.end += length - inference.begin;
    inference.begin = length;
  }
  binding.bind(sequenceDim, getUnitLength(inference, job.strategy.getNumRanks()));
}

void stage::sema::serveRequests(BoundJob &job, std::shared_ptr<const ServedUnits> served, SizeBinding &binding) {
  job.inference->served = std::move(served);
  binding.bind(sequenceDim, getUnitLength(*job.inference, job.strategy.getNumRanks()));
}

int64_t stage::sema::getUnitLength(const BoundInference &inference, int64_t numRanks) {
  if (inference.served)
    for (const PackedUnit &unit : inference.served->units)
      if (!unit.decodes)
        return unit.countTaken();
  if (inference.length)
    return inference.chunk;
  int64_t divides = 2 * numRanks;
  return std::max<int64_t>((inference.begin + divides - 1) / divides, 1) * divides;
}
