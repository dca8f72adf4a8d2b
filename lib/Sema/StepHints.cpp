//===- StepHints.cpp - words of other tools in a step ---------------------===//
//
// Problem: who knows a training script gives a step its words, and no name of the step is near to them.
//
//   step = train(batch_size = 512, seq_len = 4096, num_microbatches = 8, lr = 3.0e-4);
//
// Algorithm: a table of the words of the field, each with the line that says the same here. A word that stands for a
// dim is explained only if the model has that dim.
//
// Limits: words that are near to a name of the step, such as `micro_batch`, are left to the search for the nearest
// name.
//
//===----------------------------------------------------------------------===//
#include "StepHints.h"
#include "JobWords.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::sema;
using llvm::StringRef;

StringRef stage::sema::findStepHint(StringRef name, bool isTraining, llvm::ArrayRef<StringRef> dims) {
  std::string lower = name.lower();
  StringRef dim = llvm::StringSwitch<StringRef>(lower)
                      .Cases("batch", "batch_size", "global_batch", "global_batch_size", "gbs", batchDim)
                      .Cases("seq", "seq_len", "seqlen", "seq_length", "sequence_length", "context_length",
                             "max_seq_len", "prompt", sequenceDim)
                      .Default("");
  if (llvm::is_contained(dims, dim))
    return dim == batchDim ? "the sequences of a step are 'B', as in 'B = 512'"
                           : "the tokens of a sequence are 'S', as in 'S = 4096'";
  if (isTraining)
    return llvm::StringSwitch<StringRef>(lower)
        .Cases("num_microbatches", "microbatches", "gradient_accumulation", "gradient_accumulation_steps", "grad_accum",
               "accumulation_steps",
               "the number of microbatches is B / (ranks that split B) / microbatch: leave it out, and choose "
               "'microbatch', as in 'microbatch = 1', so that it comes out")
        .Cases("lr", "learning_rate", "weight_decay", "beta", "betas", "eps", "seed",
               "neither time nor memory depends on it; leave it out")
        .Cases("steps", "epochs", "max_steps", "num_steps", "iterations", "one step is computed; leave it out")
        .Cases("grad_clip", "clip_grad", "max_grad_norm", "gradient_clipping", "clip_norm",
               "gradients are clipped by 'clip = 1.0'")
        .Default("");
  return llvm::StringSwitch<StringRef>(lower)
      .Cases("t", "steps", "decode_steps", "output", "output_len", "max_tokens", "new_tokens", "max_new_tokens",
             "decode steps are a range of lengths behind the prompt, as in 'for T in S..S + 1000'")
      .Cases("optimizer", "clip", "lr", "'infer(...)' trains nothing; leave it out")
      .Default("");
}
