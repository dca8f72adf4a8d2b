//===- DraftLowering.cpp - a model that proposes tokens -------------------===//
//
// Problem: a small model proposes tokens one after the other, and the model verifies several at once
// (speculative decoding). Both are on the same ranks, of a pipeline on those of the last stage.
//
//   step = infer(B = 64, S = 4096, for T in 4096..5096, draft = Llama(L = 4, ...), tokens = 4, accept = 0.75);
//
//   forward   the model, then the draft model, up to what its caches need
//   draft     the draft model, over `seen` positions, of which the last one's successor is proposed
//   decode    the model, over `step` = tokens + 1 positions
//
// Algorithm: the draft model stands in the graph of the model, below the scope `draft`, with parameters, caches and
// repeats of its own. Its units take one position, and two where it has not seen the last that was accepted. No repeat
// of it is one that a pipeline cuts, so partition-pipeline leaves it where the phase ends: on the last stage, which
// verifies.
//
// Limits: what a rejected proposal has left in a cache is overwritten, which windows and states do not allow.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"

using namespace stage;

ModuleLowering::RootModel ModuleLowering::getDraft() const {
  return {job.inference->draft, job.inference->draftArgs, sema::draftScope.str()};
}

/// The draft model goes over the positions of forward, too: its parameters and caches stand there, and nothing of what
/// it puts out is needed. Without caches, of proofs, that is returned behind what the model returns.
bool ModuleLowering::lowerDraftPrefill(Block &forward) {
  std::unique_ptr<Op> end = forward.take(forward.getTerminator());
  draftLoops = numLoops;
  std::optional<llvm::SmallVector<Value *, 2>> proposed = lowerBody(getDraft(), forward);
  if (!proposed)
    return false;
  if (job.inference->isWhole)
    proposed = sample(*proposed, sema::draftScope, forward);
  if (!proposed)
    return false;
  if (job.inference->isWhole)
    for (Value *value : *proposed)
      end->addOperand(value);
  forward.append(std::move(end));
  if (job.inference->isWhole)
    return true;
  if (!checkReads(forward, diags))
    return false;
  eraseUnusedValues(forward);
  return !job.inference->isChunked() || checkPositions(forward);
}

/// As many values, with as many numbers for a position, before any of these are padded.
bool ModuleLowering::isOfOneVocabulary(llvm::ArrayRef<Value *> proposed, const Op &end) const {
  SizeBinding own = graph.binding;
  for (auto &[symbol, value] : graph.unpadded)
    own.bind(symbol, value);
  auto count = [&](const Value &value) {
    return value.type.shape.empty() ? SizeValue() : evaluate(value.type.shape.back().size, own);
  };
  unsigned sampled = job.inference->sampler ? 1 : 0;
  bool isSame = proposed.size() + sampled == end.getNumOperands();
  for (unsigned i = 0; isSame && i < proposed.size(); ++i) {
    SizeValue here = count(*proposed[i]), there = count(*end.getOperand(i));
    isSame = !here || !there || here.value == there.value;
  }
  return isSame;
}

/// A unit of the draft model: the position whose successor it proposes, and what it has not seen yet before it.
bool ModuleLowering::lowerDraft() {
  Dim *ofDecode = sequence;
  numLoops = draftLoops;
  for (auto &entry : caches)
    entry.second.isFilled = false;
  sequence = addInferredDim(sema::seenDim, 2); // as many as that in some units
  sequence->origin = context->size - sequence->size;
  Block &block = graph.getPhase(PhaseKind::Draft);
  std::optional<llvm::SmallVector<Value *, 2>> proposed = lowerBody(getDraft(), block);
  if (!proposed)
    return false;
  if (!isOfOneVocabulary(*proposed, *graph.getForward().getTerminator())) {
    diags.report(job.inference->draftRange.Start, diag::NotSupportedYet).range(job.inference->draftRange)
        << "a draft model whose outputs have other sizes than the model's, as another vocabulary; give both the same "
           "'V'";
    return false;
  }
  appendReturn(getDraft(), *proposed, block);
  eraseUnusedValues(block);
  if (!checkReads(block, diags) || !checkPositions(block))
    return false;
  bool isGood = true;
  Graph::walk(block, [&](Op &op) {
    const Mask *mask = op.def && op.def->mask ? &*op.def->mask : nullptr;
    if (mask && mask->kind != Mask::Kind::Causal && mask->kind != Mask::Kind::Full &&
        op.extents[mask->rows].dim == sequence && isGood) {
      diags.report(op.loc, diag::NotSupportedYet)
          << "'" + op.def->name +
                 "' in a draft model, as its mask is not causal: units of one and of two positions have other pairs";
      isGood = false;
    }
  });
  if (!isGood)
    return false;
  takeLastPositions(block, sequence, sema::proposedDim);
  isGood = sampleReturned(block, sema::draftScope, /*isFed=*/true);
  sequence = ofDecode;
  return isGood;
}
