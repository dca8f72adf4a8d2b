//===- Subject.h - what a communication carries ----------------*- C++ -*-===//
//
// Problem: "an all_gather of 4 GiB over (dp, cp)" does not say what could be done about it. Bytes of parameters fall
// with another partition of state, those of activations with another split of the sequence, and those of tokens with
// another dispatcher.
//
//   reduce_scatter  dp, cp  gradients    step      f32
//   all_to_all      ep      tokens       forward   bf16
//   all_gather      tp      activations  backward  bf16
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_SUBJECT_H
#define STAGE_REPORT_SUBJECT_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// In the order in which a value is more than one of them: the first that holds.
enum class Subject : uint8_t {
  Parameters,   ///< Parameters and buffers, as they are kept or cast, and what an update has made of them.
  Gradients,    ///< Of parameters.
  GradientNorm, ///< Sums of squares of gradients, by which updates are scaled.
  Caches,       ///< What inference keeps for further positions.
  Loss,         ///< What is computed of the last result that a parameter took part in, and losses beside the way.
  Tokens,       ///< In slots of experts, there and back, forward and backward; and ids, as those that are sampled.
  Activations,  ///< All else, and the gradients of all else.
};
/// `tokens`, `gradient norm`.
llvm::StringRef getName(Subject subject);

} // namespace stage

#endif // STAGE_REPORT_SUBJECT_H
