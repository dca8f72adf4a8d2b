//===- InferenceLowering.cpp - a model without its training ---------------===//
//
// Problem: the model that trains is to serve. It goes forward up to its `output`, over
// all positions of its sequences (prefill), and then over a few at a time (decode), which
// see what those before have left in caches.
//
//   cache keys: [B, S, KV, E];
//   let o = attention(rope(q), append(keys, rope(k)), ...);
//
//   training    o = attention(rope(q), rope(k))                  there are no caches
//   prefill     %all = append(%keys, %k) dim 1 : [B, S, KV, E]
//   decode      %all = append(%keys, %k) dim 1 : [B, context, KV, E], and S is `step`
//
// A cache without the dim S is a state: what stands for all positions so far.
//
//   cache state: f32[B, H, P, N];
//   write(state, next)                                             in training nothing
//   if continuing { let y = scan(x, state); }                      a state is read where units go on
//
// Algorithm: the model is elaborated twice. The first time makes parameters and caches,
// which the second one finds by their paths; dim S is the model's own, then `step`, a dim
// that no rule for S means. Its elements are the last ones of `context` positions, and say
// so (Dim::origin): rotary angles and masks need no word for it.
//
//   dim context;  dim step from context - step;
//
// Of requests (PackedSequences.cpp) all these dims have positions of several sequences.
//
// Units bind `context`, and `g`, the number of their batch, which has caches of its own.
//
// Limits: caches of positions grow along the dim S. Of a prefill in chunks the logits of each chunk's
// last position are made, not those of the last chunk only.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/graph/Packing.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/IRGen/Suggestions.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

//===----------------------------------------------------------------------===//
// The phases
//===----------------------------------------------------------------------===//

bool stage::checkReads(Block &block, DiagnosticEngine &diags) {
  llvm::DenseMap<const Value *, const Op *> written;
  bool isGood = true;
  Graph::walk(block, [&](Op &op) {
    for (const Value *operand : op.getOperands())
      if (const Op *write = written.lookup(operand); write && isGood) {
        DiagnosticBuilder message = diags.report(op.loc, diag::CacheReadBehind) << operand->getOp()->name;
        message.note(write->loc, diag::CacheWrittenHere) << operand->getOp()->name;
        isGood = false;
      }
    if (op.kind == OpKind::Write)
      written[op.getOperand(0)] = &op;
  });
  return isGood;
}

bool ModuleLowering::lowerInference() {
  const sema::BoundInference &inference = *job.inference;
  auto hasOutput = [](const ast::Stmt *stmt) { return llvm::isa<ast::OutputStmt>(stmt); };
  if (llvm::none_of(job.model->body, hasOutput)) {
    DiagnosticBuilder error = diags.report(job.modelRange.Start, diag::OutputMissing).range(job.modelRange)
                              << job.model->name.name;
    // Of a loss, the scores are its first argument.
    llvm::ArrayRef<ast::Stmt *> body = job.model->body;
    auto *returned = body.empty() ? nullptr : llvm::dyn_cast<ast::ReturnStmt>(body.back());
    if (auto *call = returned ? llvm::dyn_cast<ast::CallExpr>(returned->value) : nullptr; call && !call->args.empty())
      error.note(returned->loc(), diag::OutputBeforeReturn)
          << "let logits = " + ast::textOf(call->args.front().value) + ";";
    return false;
  }
  if (inference.draft && llvm::none_of(inference.draft->body, hasOutput)) {
    diags.report(inference.draftRange.Start, diag::OutputMissing).range(inference.draftRange)
        << inference.draft->name.name;
    return false;
  }
  evaluator.setPhase({/*decoding=*/false, /*continuing=*/false, /*inferring=*/true});
  if (inference.isWhole) {
    if (!lowerPhase(graph.getForward()) || !sampleReturned(graph.getForward(), "", /*isFed=*/false) ||
        (inference.draft && !lowerDraftPrefill(graph.getForward())))
      return false;
    eraseUnusedValues(graph.getForward());
    return true;
  }
  if (!findContextSplit())
    return false;
  bool hasContext = inference.decodes() || inference.isChunked();
  if (hasContext)
    context = addInferredDim(sema::contextDim, inference.length ? std::max(inference.chunk, inference.countStep())
                                                                : inference.begin + inference.countStep());
  addRoom(inference.getRoom());
  graph.binding.bind(batchSymbol, 0);
  if (inference.isPacked()) {
    context->isPacked = true;
    graph.binding.bind(sema::servedDim, inference.served->sequences);
  }
  // Without prefill no unit goes forward: then it is elaborated as decode steps are.
  bool isPrefilled = inference.prefills();
  evaluator.setPhase(
      {/*decoding=*/!isPrefilled, /*continuing=*/!isPrefilled || inference.isChunked(), /*inferring=*/true});
  if (!lowerPhase(graph.getForward()) || !checkReads(graph.getForward(), diags))
    return false;
  eraseUnusedValues(graph.getForward());
  if (inference.isChunked() && !checkPositions(graph.getForward()))
    return false;
  Dim *prompt = sequence;
  if (inference.draft && !lowerDraftPrefill(graph.getForward()))
    return false;
  if (!inference.allLogits)
    takeLastPositions(graph.getForward(), prompt, sema::sampledDim);
  // Where a server goes through requests some of a unit may decode.
  if (!sampleReturned(graph.getForward(), "", /*isFed=*/inference.servesRequests))
    return false;
  if (!inference.decodes())
    return !inference.isPacked() || pack();
  isDecoding = true;
  evaluator.setPhase({/*decoding=*/true, /*continuing=*/true, /*inferring=*/true});
  numLoops = 0;
  for (auto &entry : caches)
    entry.second.isFilled = false;
  sequence = addInferredDim(sema::stepDim, inference.countStep());
  sequence->origin = getContext() - sequence->size;
  sequence->isPacked = inference.isPacked();
  Block &decode = graph.getPhase(PhaseKind::Decode);
  bool isGood = lowerPhase(decode) && (!inference.draft || lowerDraft());
  splitFolds(decode);
  if (isGood) {
    eraseUnusedValues(decode);
    isGood = sampleReturned(decode, "", /*isFed=*/true);
  }
  evaluator.setPhase({});
  if (!isGood)
    return false;
  return checkReads(decode, diags) && checkPositions(decode) && (!inference.isPacked() || pack());
}

/// Once all phases of several sequences are there.
bool ModuleLowering::pack() {
  const ServedUnits &served = *job.inference->served;
  for (auto [phase, parts] : {std::pair(PhaseKind::Store, &PackedUnit::stored), {PhaseKind::Load, &PackedUnit::loaded}})
    if (llvm::any_of(served.units, [parts = parts](const PackedUnit &unit) { return !(unit.*parts).empty(); }))
      copyCaches(phase);
  std::optional<int64_t> tile;
  if (job.machine)
    tile = job.runtime ? job.runtime->attentionTile : 0;
  return packSequences(graph, *job.inference, tile, diags);
}

Dim *ModuleLowering::addInferredDim(llvm::StringRef name, int64_t value) {
  dimNames.insert(name);
  graph.binding.bind(name, value);
  return graph.addDim(name, name == sema::contextDim ? roundUp(getContext()) : graph.sizes.symbol(name),
                      job.stepRange.Start);
}

Size ModuleLowering::getContext() const { return graph.sizes.symbol(sema::contextDim); }

/// Caches have room for so many positions, in whole rounds where these are dealt out to ranks. Then rules for `context`
/// mean them, too.
void ModuleLowering::addRoom(int64_t positions) {
  graph.binding.bind(sema::roomDim, positions);
  if (!contextParts)
    return;
  dimNames.insert(sema::roomDim);
  room = graph.addDim(sema::roomDim, roundUp(graph.sizes.symbol(sema::roomDim)), job.stepRange.Start);
  room->aliases.push_back(sema::contextDim.str());
}

static bool holdsCache(const Value *value) { return value->getOp() && value->getOp()->kind == OpKind::Cache; }

/// What reads other positions of a sequence than its own must find them: in a part of a sequence only a cache has them,
/// or a state stands for them.
bool ModuleLowering::checkPositions(Block &block) {
  bool isGood = true;
  Graph::walk(block, [&](Op &op) {
    if (op.kind != OpKind::Compute || op.def->getRouting() || !isGood || llvm::any_of(op.getOperands(), holdsCache))
      return;
    for (unsigned index = 0; index < op.extents.size() && isGood; ++index) {
      const IndexInfo &info = op.def->indices[index];
      isGood = op.extents[index].dim != sequence || !(info.whole || info.fold || op.def->reduced[index]);
      if (!isGood)
        diags.report(op.loc, diag::PositionsMissing) << op.def->name << info.name;
    }
  });
  return isGood;
}

/// What follows is of training.
bool ModuleLowering::lowerOutput(const ast::OutputStmt &stmt, Environment &env, Place &place,
                                 std::optional<CTValue> *result) {
  output = &stmt;
  *result = lower(stmt.value, env, place);
  return result->has_value();
}

/// The value of a dim of the step: of S that of the phase.
sema::CTValue ModuleLowering::getSequence(const sema::NamedValue &bound) {
  if (bound.name.name == sema::sequenceDim && isDecoding)
    return CTValue::size(sequence->size).withTag(sequence);
  return bound.value;
}

void ModuleLowering::noteSequence(llvm::StringRef name, const CTValue &dim) {
  if (name != sema::sequenceDim || isDecoding)
    return;
  sequence = const_cast<Dim *>(static_cast<const Dim *>(dim.getTag()));
  if (job.inference->isChunked() && !job.inference->isWhole)
    sequence->origin = getContext() - sequence->size;
  sequence->isPacked = job.inference->isPacked();
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

/// Cases of a repeat may have parameters of one name.
static unsigned getCase(const Block &block) { return block.getParent() ? block.getNumber() : 0; }

void ModuleLowering::addState(const Place &place, Value *value) {
  states[{value->path, getCase(*place.block)}] = value;
}

Value *ModuleLowering::findState(const Place &place, llvm::StringRef path) const {
  auto it = states.find({path.str(), getCase(*place.block)});
  return it == states.end() ? nullptr : it->second;
}

bool ModuleLowering::lowerCacheDecl(const ast::TensorDeclStmt &stmt, Environment &env, Place &place) {
  std::optional<TensorType> type = lowerType(*stmt.type, graph.precision.activation, env);
  std::optional<CTValue> lastValue = stmt.last ? evaluator.evaluate(stmt.last, env) : std::nullopt;
  if (!type || (stmt.last && !lastValue))
    return false;
  Size last;
  if (lastValue && !lastValue->isNone()) {
    std::optional<Size> size = evaluator.evaluateSize(stmt.last, env);
    if (!size)
      return false;
    if (hasCaches() || !stmt.isPast) // without caches a convolution may be over one token
      graph.obligations.add(Obligations::Kind::Positive, *size, Size(), stmt.last->loc(),
                            "the positions that a cache keeps");
    last = *size;
  }
  for (const ast::Ident &name : stmt.names) {
    std::string path = joinPath(place.scope, name.name);
    auto [entry, isNew] = caches.try_emplace(path + "#" + std::to_string(getCase(*place.block)));
    // Where units go on with a state it is a tensor.
    auto defineName = [&] {
      const Cache &cache = entry->second;
      bool isRead = hasCaches() && !cache.along && evaluator.getPhase().continuing;
      env.define(name.name, isRead ? tensor(cache.value) : CTValue::word(entry->first));
    };
    if (isNew == isDecoding) { // of a repeat that is written out each iteration has its own
      diags.report(name.loc(), diag::DecodeLayersDiffer).range(name.range) << name.name;
      return false;
    }
    if (isDecoding) {
      defineName();
      continue;
    }
    auto op = std::make_unique<Op>(OpKind::Cache, name.loc());
    op->scope = place.scope;
    op->name = name.name.str();
    TensorType kept = *type;
    Cache &cache = entry->second;
    if (hasCaches()) {
      Size room = graph.sizes.symbol(sema::roomDim);
      for (unsigned d = 0; d < kept.getNumDims(); ++d)
        if (Extent &extent = kept.shape[d]; extent.dim && extent.dim == sequence) {
          // Of requests each keeps as many.
          Size sequences = job.inference->isPacked() ? graph.sizes.symbol(sema::servedDim) : graph.sizes.one();
          extent = {last ? nullptr : this->room, last ? min(last * sequences, room) : roundUp(room)};
          cache.along = d;
        }
      if (job.microbatches > 1) {
        op->entry = graph.sizes.symbol(batchSymbol);
        op->entries = graph.sizes.constant(job.microbatches);
      }
    }
    Value *value = op->addResult(hasCaches() ? kept : *type, path);
    if (!constrain(*value, *stmt.type))
      return false;
    bool isOfSeveral = job.inference && job.inference->isPacked() && !cache.along;
    if (isOfSeveral && job.inference->served->rejects) {
      diags.report(name.loc(), diag::NotSupportedYet).range(name.range)
          << "a state where drafts may be rejected, which it would have to forget";
      return false;
    }
    if (isOfSeveral) { // each has its own
      op->entry = graph.sizes.zero();
      op->entries = graph.sizes.symbol(sema::servedDim);
      for (llvm::StringRef symbol : {presentSymbol, resumedSymbol})
        if (!graph.findDim(symbol))
          addInferredDim(symbol, 1);
    }
    bool canGoBack = !last && (!hasCaches() || cache.along);
    if (job.inference && job.inference->draft && hasCaches() && !canGoBack &&
        job.inference->acceptance.compare(Rational{1, 1}) < 0) {
      diags.report(name.loc(), diag::NotSupportedYet).range(name.range)
          << (last ? "a window of positions" : "a state") +
                 std::string(" where proposals of a draft model may be rejected, which it would have to forget");
      return false;
    }
    cache.value = value;
    cache.last = last;
    cache.window = last && stmt.isPast ? last + 1 : last;
    defineName();
    if (hasCaches())
      place.block->append(std::move(op));
    else
      cache.placeholder = std::move(op);
  }
  return true;
}

/// `append(...)` or `write(...)`, unless a declaration or a local has the name.
bool ModuleLowering::isCacheCall(const ast::CallExpr &call, const Environment &env) const {
  auto *callee = llvm::dyn_cast<ast::NameExpr>(call.callee);
  return callee && !env.find(callee->name) && !evaluator.getProgram().lookup(env.getFile(), callee->name) &&
         sema::findBuiltin(callee->name) == sema::BuiltinKind::CacheFunction;
}

/// What a call that fills a cache names; null after an error.
ModuleLowering::Cache *ModuleLowering::findCache(const ast::CallExpr &call, const Environment &env) {
  auto *name = call.args.size() == 2 ? llvm::dyn_cast<ast::NameExpr>(call.args[0].value) : nullptr;
  const CTValue *named = name ? env.find(name->name) : nullptr;
  auto it = caches.end();
  if (named && named->getKind() == CTValue::Kind::Word)
    it = caches.find(named->getText().str());
  else if (named && named->isForeign())
    it = llvm::find_if(caches, [&](auto &entry) { return entry.second.value == named->getForeign(); });
  if (it != caches.end())
    return &it->second;
  diags.report(call.loc(), diag::CacheExpected).range(call.range) << ast::textOf(call.callee);
  return nullptr;
}

/// `write(state, next)`: what units behind this one find there.
bool ModuleLowering::lowerWrite(const ast::CallExpr &call, Environment &env, Place &place) {
  Cache *cache = findCache(call, env);
  if (!cache || !hasCaches()) // what training writes nobody reads: it is not even computed
    return cache;
  llvm::StringRef name = llvm::cast<ast::NameExpr>(call.args[0].value)->name;
  SMRange range = call.args[1].value->range;
  Value *next = expectTensor(lower(call.args[1].value, env, place), range);
  if (!next)
    return false;
  const TensorType &kept = cache->value->type;
  bool fits = !cache->along && kept.dtype == next->type.dtype && kept.getNumDims() == next->type.getNumDims();
  for (unsigned d = 0; fits && d < kept.getNumDims(); ++d)
    fits = kept.shape[d].size == next->type.shape[d].size;
  if (!fits) {
    DiagnosticBuilder message = diags.report(call.loc(), cache->along ? diag::WriteOfPositions : diag::StateShape)
                                << name << describe(kept) << describe(next->type);
    message.range(range).note(cache->value->loc, diag::PreviousHere) << name;
    return false;
  }
  if (std::exchange(cache->isFilled, true)) {
    diags.report(call.loc(), diag::CacheFilledTwice).range(call.range) << name;
    return false;
  }
  auto op = std::make_unique<Op>(OpKind::Write, call.loc());
  op->scope = place.scope;
  op->addOperand(cache->value);
  op->addOperand(next);
  place.block->append(std::move(op));
  return true;
}

/// `append(keys, k)`: all positions that there are then. In training those of the sequence.
std::optional<sema::CTValue> ModuleLowering::lowerAppend(const ast::CallExpr &call, Environment &env, Place &place) {
  auto *callee = llvm::cast<ast::NameExpr>(call.callee);
  if (callee->name != "append") {
    diags.report(call.loc(), diag::WriteIsNoValue).range(call.range);
    return std::nullopt;
  }
  Cache *cache = findCache(call, env);
  if (!cache)
    return std::nullopt;
  llvm::StringRef name = llvm::cast<ast::NameExpr>(call.args[0].value)->name;
  Value *added = expectTensor(lower(call.args[1].value, env, place), call.args[1].value->range);
  if (!added)
    return std::nullopt;
  // The cache has the dims of what is appended; S of training, and of the declaration, has become its room.
  const TensorType &kept = cache->value->type;
  std::optional<unsigned> along;
  bool fits = kept.getNumDims() == added->type.getNumDims();
  for (unsigned d = 0; fits && d < kept.getNumDims(); ++d) {
    const Extent &extent = added->type.shape[d];
    if (hasCaches() && extent.dim && extent.dim == sequence)
      along = d;
    else
      fits = kept.shape[d].size == extent.size;
  }
  if (!fits || kept.dtype != added->type.dtype || (hasCaches() && !along) || along != cache->along) {
    bool isOfWeights = fits && kept.dtype == graph.precision.activation &&
                       added->type.dtype == graph.precision.weight && kept.dtype != added->type.dtype;
    DiagnosticBuilder message = diags.report(call.loc(), isOfWeights ? diag::CacheOfWeights : diag::CacheShape)
                                << name << (isOfWeights ? getName(kept.dtype).str() : describe(kept))
                                << (isOfWeights ? getName(added->type.dtype).str() : describe(added->type));
    message.range(call.args[1].value->range);
    message.note(cache->value->loc, diag::PreviousHere) << name;
    return std::nullopt;
  }
  if (std::exchange(cache->isFilled, true)) {
    diags.report(call.loc(), diag::CacheFilledTwice).range(call.range) << name;
    return std::nullopt;
  }
  if (!hasCaches())
    return tensor(added);
  TensorType all = added->type;
  Extent &extent = all.shape[*along];
  bool hasOthers = isDecoding || job.inference->isChunked();
  if (hasOthers && cache->last)
    extent = getWindow(cache->window);
  else if (hasOthers)
    extent = {context, context->size};
  auto op = std::make_unique<Op>(OpKind::Append, call.loc());
  op->scope = place.scope;
  op->dim = *along;
  op->isRolling = bool(cache->last);
  op->addOperand(cache->value);
  op->addOperand(added);
  Value *result = op->addResult(all);
  place.block->append(std::move(op));
  return tensor(result);
}

/// Of the last positions those that this phase's see: `last - 1` before the first of them, if there are as many.
Extent ModuleLowering::getWindow(Size last) {
  Size size = min(getContext(), last - 1 + sequence->size);
  if (context->isPacked)
    return getPackedWindow(size);
  for (auto &dim : graph.dims)
    if (dim->size == size && dim->origin)
      return {dim.get(), size};
  std::string name;
  for (unsigned number = 0; !dimNames.insert(name = "recent" + std::to_string(number)).second;)
    ++number;
  Dim *dim = graph.addDim(name, size, job.stepRange.Start);
  dim->origin = getContext() - size;
  return {dim, size};
}

/// Of several sequences: the sum of the windows of each, which is `size` of one.
Extent ModuleLowering::getPackedWindow(Size size) {
  SequenceSum sum{"", size, ofOnePosition(graph, size, *sequence), job.stepRange.Start};
  if (const SequenceSum *known = findSum(graph, sum))
    return {graph.findDim(known->symbol), graph.sizes.symbol(known->symbol)};
  for (unsigned number = 0; !dimNames.insert(sum.symbol = "recent" + std::to_string(number)).second;)
    ++number;
  Dim *dim = graph.addDim(sum.symbol, graph.sizes.symbol(sum.symbol), job.stepRange.Start);
  dim->origin = context->size - dim->size;
  dim->isPacked = true;
  graph.sums.push_back(sum);
  return {dim, dim->size};
}

//===----------------------------------------------------------------------===//
// What units bind
//===----------------------------------------------------------------------===//

/// Each batch is prefilled, then all do one decode step after the other.
std::vector<Unit> stage::listUnits(const sema::BoundJob &job, const Graph &graph, const UnitBindings &ofSteps,
                                   Environments &environments) {
  const sema::BoundInference &inference = *job.inference;
  if (inference.served && inference.isWhole)
    return listWholeUnits(*inference.served, environments);
  if (inference.isPacked()) {
    std::vector<Unit> packed = listPackedUnits(*inference.served, graph, ofSteps, environments);
    if (inference.sampler)
      feedPackedUnits(*inference.served, inference.servesRequests, packed);
    return packed;
  }
  std::vector<Unit> units;
  std::vector<std::optional<unsigned>> lastOfBatch(job.microbatches);
  auto add = [&](PhaseKind kind, int64_t batch, UnitBindings bindings) {
    std::optional<unsigned> before = std::exchange(lastOfBatch[batch], units.size());
    if (job.microbatches > 1)
      bindings.emplace_back(batchSymbol.str(), batch);
    if (kind == PhaseKind::Decode)
      llvm::append_range(bindings, ofSteps);
    if (inference.isWhole) {
      // All that there is then.
      auto context = llvm::find_if(bindings, [](auto &bound) { return bound.first == sema::contextDim; });
      int64_t length = context == bindings.end() ? inference.length : context->second;
      llvm::erase_if(bindings, [](auto &bound) { return bound.first != batchSymbol; });
      bindings.emplace_back(sema::sequenceDim.str(), length);
      kind = PhaseKind::Forward;
    }
    Unit unit;
    unit.kind = kind;
    unit.microbatch = units.size();
    if (inference.sampler && isDecoding(kind))
      unit.feeder = before;
    unit.environment = bindings.empty() ? 0 : environments.add(std::move(bindings));
    units.push_back(unit);
  };
  for (int64_t batch = 0; batch < job.microbatches; ++batch)
    for (int64_t at = 0; at < inference.length; at += inference.chunk) {
      int64_t count = std::min(inference.chunk, inference.length - at);
      UnitBindings bindings;
      if (inference.isChunked())
        bindings.emplace_back(sema::contextDim.str(), at + count);
      if (count < inference.chunk)
        bindings.emplace_back(sema::sequenceDim.str(), count);
      add(PhaseKind::Forward, batch, std::move(bindings));
    }
  if (inference.draft) {
    // A batch's proposals stand behind the step that they go on from: on a pipeline its last stage makes them while the
    // first verifies other batches.
    std::vector<sema::BoundInference::Round> rounds = inference.listRounds();
    auto propose = [&](const sema::BoundInference::Round &round, int64_t batch) {
      for (int64_t i = 0; i < inference.tokens; ++i)
        add(PhaseKind::Draft, batch,
            {{sema::contextDim.str(), round.begin + 1 + i}, {sema::seenDim.str(), 1 + (i ? 0 : round.behind)}});
    };
    for (int64_t batch = 0; batch < job.microbatches; ++batch)
      propose(rounds.front(), batch);
    for (size_t i = 0; i < rounds.size(); ++i)
      for (int64_t batch = 0; batch < job.microbatches; ++batch) {
        add(PhaseKind::Decode, batch, {{sema::contextDim.str(), rounds[i].begin + inference.countStep()}});
        if (i + 1 < rounds.size())
          propose(rounds[i + 1], batch);
      }
    return units;
  }
  for (int64_t at = inference.begin; at < inference.end; at += inference.tokens)
    for (int64_t batch = 0; batch < job.microbatches; ++batch)
      add(PhaseKind::Decode, batch, {{sema::contextDim.str(), at + inference.tokens}});
  return units;
}
