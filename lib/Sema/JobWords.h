//===- JobWords.h - the words of jobs and their like -----------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_JOBWORDS_H
#define STAGE_LIB_SEMA_JOBWORDS_H

#include "stage/Sema/InferenceWords.h"

namespace stage::sema {

constexpr llvm::StringRef modelWord = "model", stepWord = "step", precisionWord = "precision",
                          strategyWord = "strategy", machineWord = "machine", runtimeWord = "runtime",
                          configWord = "config", jobWord = "job", searchWord = "search";
/// The entries of a job.
constexpr llvm::StringRef jobEntries[] = {modelWord, stepWord, precisionWord, strategyWord, machineWord, runtimeWord};

constexpr llvm::StringRef trainWord = "train", inferWord = "infer";
constexpr llvm::StringRef stepKinds[] = {trainWord, inferWord};
/// A value that an entry may have, for messages that ask for one.
inline llvm::StringRef getExample(llvm::StringRef entry) {
  return entry == modelWord       ? "MyModel(my_config)"
         : entry == stepWord      ? "train(B = 8, S = 1024, microbatch = 1, optimizer = adamw)"
         : entry == precisionWord ? "bf16_mixed"
                                  : "...";
}
/// Arguments of a step that are no dims of the model.
constexpr llvm::StringRef microbatchWord = "microbatch", optimizerWord = "optimizer", clipWord = "clip";
/// Those of inference: positions that a unit of prefill takes, those that a decode step adds, and whose logits are
/// made.
constexpr llvm::StringRef chunkWord = "chunk", tokensWord = "tokens", logitsWord = "logits", lastWord = "last",
                          allWord = "all";
/// The job that fills the caches on ranks of its own, and when it sends them.
constexpr llvm::StringRef prefilledWord = "prefilled", sendWord = "send", byLayerWord = "by_layer",
                          atEndWord = "at_end";
/// When messages between stages leave: `send = at_end`, or early.
constexpr llvm::StringRef earlyWord = "early";
/// What the sender does meanwhile: `messages = free`, or blocking.
constexpr llvm::StringRef messagesWord = "messages", freeWord = "free", blockingWord = "blocking";
constexpr llvm::StringRef scatterGatherWord = "scatter_gather";
/// And the model that proposes what a decode step verifies, and the share of it that is accepted.
constexpr llvm::StringRef draftWord = "draft", acceptWord = "accept";
/// The module that makes a token of what the model puts out.
constexpr llvm::StringRef sampleWord = "sample";
/// The value of S for which a file has the sequences.
constexpr llvm::StringRef requestsWord = "requests";
/// The dim of sequences: a step gives its global size, the graph has that of one microbatch.
constexpr llvm::StringRef batchDim = "B";

/// The element types of a precision; all are needed.
constexpr llvm::StringRef precisionTypes[] = {"weight", "activation", "gradient", "master"};
/// The entry of a precision that may be left out, and its values: how contributions to a gradient are added up.
constexpr llvm::StringRef accumulateWord = "accumulate", fusedWord = "fused", separateWord = "separate";
/// Of the search of a job: the ranks of every plan, and what plans are ranked by.
constexpr llvm::StringRef gpusWord = "gpus", objectiveWord = "objective", paretoWord = "pareto";
/// Bytes of a rank, about which a requirement may ask, and the machine.
constexpr llvm::StringRef memoryWord = "memory";

/// The entry of an optimizer, and what its value is over: the elements of a parameter.
constexpr llvm::StringRef flopsWord = "flops", volumeWord = "volume";

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_JOBWORDS_H
