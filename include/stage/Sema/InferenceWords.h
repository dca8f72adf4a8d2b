//===- InferenceWords.h - names that inference gives -----------*- C++ -*-===//
#ifndef STAGE_SEMA_INFERENCEWORDS_H
#define STAGE_SEMA_INFERENCEWORDS_H

#include "stage/Schedule/InferenceSymbols.h"

namespace stage::sema {

/// The dim of positions in a sequence, of which prefill takes all and a decode step a few.
constexpr llvm::StringRef sequenceDim = lengthSymbol;
/// What inference adds to the sizes of a model: positions of a decode step, of a sequence so far, those for which
/// caches have room, those whose logits a prefill makes; and the number of a unit's batch (batchSymbol of the IR). Of
/// requests also how many there may be at a time.
constexpr llvm::StringRef stepDim = stepSymbol, contextDim = contextSymbol, roomDim = roomSymbol,
                          sampledDim = sampledSymbol, servedDim = "sequences";
/// Where a strategy splits `context`: the parts that ops fold each by itself.
constexpr llvm::StringRef splitsDim = "splits";
/// Where a draft model proposes tokens, positions that a unit of it takes, and the last of them, which it proposes the
/// next one for.
constexpr llvm::StringRef seenDim = "seen", proposedDim = "proposed";
using stage::draftScope;
constexpr llvm::StringRef inferredDims[] = {stepDim,       contextDim,  roomDim,      sampledDim,   servedDim,
                                            seenDim,       proposedDim, storedSymbol, loadedSymbol, presentSymbol,
                                            resumedSymbol, splitsDim,   "g"};

} // namespace stage::sema

#endif // STAGE_SEMA_INFERENCEWORDS_H
