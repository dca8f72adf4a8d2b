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
// Algorithm: the model is elaborated twice. The first time makes parameters and caches,
// which the second one finds by their paths; dim S is the model's own, then `step`, a dim
// that no rule for S means. Its elements are the last ones of `context` positions, and say
// so (Dim::origin): rotary angles and masks need no word for it.
//
//   dim context;  dim step from context - step;
//
// Units bind `context`, and `g`, the number of their batch, which has caches of its own.
//
// Limits: a cache grows along the dim S. Of a prefill in chunks the logits of each chunk's
// last position are made, not those of the last chunk only.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/IR/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"

using namespace stage;

//===----------------------------------------------------------------------===//
// The phases
//===----------------------------------------------------------------------===//

/// Labels are of training.
static void eraseUnusedInputs(Block &block) {
  for (auto it = block.begin(); it != block.end();) {
    Op *op = (it++)->get();
    if (op->kind == OpKind::Input && op->getResult()->getUses().empty())
      block.erase(op);
  }
}

bool ModuleLowering::lowerInference() {
  const sema::BoundInference &inference = *job.inference;
  auto hasOutput = [](const ast::Stmt *stmt) { return llvm::isa<ast::OutputStmt>(stmt); };
  if (llvm::none_of(job.model->body, hasOutput)) {
    diags.report(job.modelRange.Start, diag::OutputMissing).range(job.modelRange) << job.model->name.name;
    return false;
  }
  if (inference.isWhole) {
    bool isGood = lowerPhase(graph.getForward());
    eraseUnusedInputs(graph.getForward());
    return isGood;
  }
  auto addDim = [&](llvm::StringRef name, int64_t value) {
    dimNames.insert(name);
    graph.binding.bind(name, value);
    return graph.addDim(name, graph.sizes.symbol(name), job.stepRange.Start);
  };
  bool hasContext = inference.decodes() || inference.isChunked();
  if (hasContext)
    context = addDim(sema::contextDim, inference.length ? inference.chunk : inference.begin + inference.tokens);
  graph.binding.bind(sema::roomDim, inference.getRoom());
  graph.binding.bind(batchSymbol, 0);
  if (!lowerPhase(graph.getForward()))
    return false;
  eraseUnusedInputs(graph.getForward());
  if (inference.isChunked() && !checkPositions(graph.getForward()))
    return false;
  if (!inference.allLogits)
    takeLastPositions(graph, sequence, sema::sampledDim);
  if (!inference.decodes())
    return true;
  isDecoding = true;
  evaluator.setDecoding(true);
  numLoops = 0;
  for (auto &entry : caches)
    entry.second.isFilled = false;
  sequence = addDim(sema::stepDim, inference.tokens);
  sequence->origin = context->size - sequence->size;
  Block &decode = graph.getPhase(PhaseKind::Decode);
  bool isGood = lowerPhase(decode);
  evaluator.setDecoding(false);
  eraseUnusedInputs(decode);
  return isGood && checkPositions(decode);
}

/// What reads other positions of a sequence than its own must find them: in a part of a sequence only a cache has them.
bool ModuleLowering::checkPositions(Block &block) {
  bool isGood = true;
  Graph::walk(block, [&](Op &op) {
    if (op.kind != OpKind::Compute || op.def->getRouting() || !isGood)
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
    sequence->origin = context->size - sequence->size;
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
    graph.obligations.add(Obligations::Kind::Positive, *size, Size(), stmt.last->loc(), "the positions that a cache keeps");
    last = *size;
  }
  for (const ast::Ident &name : stmt.names) {
    std::string path = joinPath(place.scope, name.name);
    auto [entry, isNew] = caches.try_emplace(path + "#" + std::to_string(getCase(*place.block)));
    env.define(name.name, CTValue::word(entry->first));
    if (isNew == isDecoding) { // of a repeat that is written out each iteration has its own
      diags.report(name.loc(), diag::DecodeLayersDiffer).range(name.range) << name.name;
      return false;
    }
    if (isDecoding)
      continue;
    auto op = std::make_unique<Op>(OpKind::Cache, name.loc());
    op->scope = place.scope;
    op->name = name.name.str();
    TensorType kept = *type;
    if (hasCaches()) {
      Size room = graph.sizes.symbol(sema::roomDim);
      for (Extent &extent : kept.shape)
        if (extent.dim && extent.dim == sequence)
          extent = {nullptr, last ? min(last, room) : room};
      if (job.microbatches > 1) {
        op->entry = graph.sizes.symbol(batchSymbol);
        op->entries = graph.sizes.constant(job.microbatches);
      }
    }
    Value *value = op->addResult(hasCaches() ? kept : *type, path);
    if (!constrain(*value, *stmt.type))
      return false;
    Cache &cache = entry->second;
    cache.value = value;
    cache.last = last;
    if (hasCaches())
      place.block->append(std::move(op));
    else
      cache.placeholder = std::move(op);
  }
  return true;
}

/// `append(keys, k)`: all positions that there are then. In training those of the sequence.
std::optional<sema::CTValue> ModuleLowering::lowerAppend(const ast::CallExpr &call, Environment &env, Place &place) {
  auto *name = call.args.empty() ? nullptr : llvm::dyn_cast<ast::NameExpr>(call.args[0].value);
  const CTValue *named = name ? env.find(name->name) : nullptr;
  bool isWord = named && named->getKind() == CTValue::Kind::Word;
  auto cache = isWord ? caches.find(named->getText().str()) : caches.end();
  auto *callee = llvm::cast<ast::NameExpr>(call.callee);
  if (callee->name != "append") {
    diags.report(call.loc(), diag::NotSupportedYet).range(call.range) << "'" + callee->name + "'";
    return std::nullopt;
  }
  if (call.args.size() != 2 || cache == caches.end()) {
    diags.report(call.loc(), diag::CacheExpected).range(call.range) << callee->name;
    return std::nullopt;
  }
  Value *added = expectTensor(lower(call.args[1].value, env, place), call.args[1].value->range);
  if (!added)
    return std::nullopt;
  // The cache has the dims of what is appended; S of training, and of the declaration, has become its room.
  const TensorType &kept = cache->second.value->type;
  std::optional<unsigned> along;
  bool fits = kept.getNumDims() == added->type.getNumDims();
  for (unsigned d = 0; fits && d < kept.getNumDims(); ++d) {
    const Extent &extent = added->type.shape[d];
    if (hasCaches() && extent.dim && extent.dim == sequence)
      along = d;
    else
      fits = kept.shape[d].size == extent.size;
  }
  if (!fits || kept.dtype != added->type.dtype || (hasCaches() && !along)) {
    DiagnosticBuilder message = diags.report(call.loc(), diag::CacheShape);
    message << name->name << describe(kept) << describe(added->type);
    message.range(call.args[1].value->range);
    message.note(cache->second.value->loc, diag::PreviousHere) << name->name;
    return std::nullopt;
  }
  if (std::exchange(cache->second.isFilled, true)) {
    diags.report(call.loc(), diag::CacheFilledTwice).range(call.range) << name->name;
    return std::nullopt;
  }
  if (!hasCaches())
    return tensor(added);
  TensorType all = added->type;
  Extent &extent = all.shape[*along];
  bool hasOthers = isDecoding || job.inference->isChunked();
  if (hasOthers && cache->second.last)
    extent = getWindow(cache->second.last);
  else if (hasOthers)
    extent = {context, context->size};
  auto op = std::make_unique<Op>(OpKind::Append, call.loc());
  op->scope = place.scope;
  op->dim = *along;
  op->isRolling = bool(cache->second.last);
  op->addOperand(cache->second.value);
  op->addOperand(added);
  Value *result = op->addResult(all);
  place.block->append(std::move(op));
  return tensor(result);
}

/// Of the last positions those that this phase's see: `last - 1` before the first of them, if there are as many.
Extent ModuleLowering::getWindow(Size last) {
  Size size = min(context->size, last - 1 + sequence->size);
  for (auto &dim : graph.dims)
    if (dim->size == size && dim->origin)
      return {dim.get(), size};
  std::string name;
  for (unsigned number = 0; !dimNames.insert(name = "recent" + std::to_string(number)).second;)
    ++number;
  Dim *dim = graph.addDim(name, size, job.stepRange.Start);
  dim->origin = context->size - size;
  return {dim, size};
}

//===----------------------------------------------------------------------===//
// What units bind
//===----------------------------------------------------------------------===//

/// Each batch is prefilled, then all do one decode step after the other.
std::vector<Unit> stage::listUnits(const sema::BoundJob &job, Environments &environments) {
  const sema::BoundInference &inference = *job.inference;
  std::vector<Unit> units;
  auto add = [&](PhaseKind kind, int64_t batch, UnitBindings bindings) {
    if (job.microbatches > 1)
      bindings.emplace_back(batchSymbol.str(), batch);
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
  for (int64_t at = inference.begin; at < inference.end; at += inference.tokens)
    for (int64_t batch = 0; batch < job.microbatches; ++batch)
      add(PhaseKind::Decode, batch, {{sema::contextDim.str(), at + inference.tokens}});
  return units;
}
