//===- InferenceSymbols.h - what units of inference bind -------*- C++ -*-===//
#ifndef STAGE_SCHEDULE_INFERENCESYMBOLS_H
#define STAGE_SCHEDULE_INFERENCESYMBOLS_H

#include "llvm/ADT/StringRef.h"

namespace stage {

/// The symbol that units of inference bind to the number of their batch of sequences, whose caches they go on with.
constexpr llvm::StringLiteral batchSymbol = "g";
/// Of a graph that infers: positions of a sequence for which caches have room, and sequences of a batch.
constexpr llvm::StringLiteral roomSymbol = "room", sequencesSymbol = "B";
/// Positions of a unit of prefill, of a decode step, those that their sequences have then, and those whose outputs are
/// wanted.
constexpr llvm::StringLiteral lengthSymbol = "S", stepSymbol = "step", contextSymbol = "context",
                              sampledSymbol = "sampled";
/// Positions that are copied to the host before a unit, and back.
constexpr llvm::StringLiteral storedSymbol = "stored", loadedSymbol = "loaded";
/// Of several sequences in a unit, how many there are, each with a state of its own, and how many have been there
/// before.
constexpr llvm::StringLiteral presentSymbol = "present", resumedSymbol = "resumed";

/// What a draft model adds to a graph begins with this: paths of its values and symbols of its parameters.
constexpr llvm::StringLiteral draftScope = "draft";

} // namespace stage

#endif // STAGE_SCHEDULE_INFERENCESYMBOLS_H
