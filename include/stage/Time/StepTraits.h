//===- StepTraits.h - what the error of a step depends on -------*- C++ -*-===//
//
// Problem: predicted steps have been compared with measured ones. Is a step of the same kind as these?
//
//   ops that route tokens, 8-bit products      a model of experts, which no row of a dense model speaks of
//   32 experts on a rank, and a dispatch that waits for the host      the host launches the kernels of each expert anew
//
// Rule: traits follow from ops and tasks. No name of a model, a module or an op counts.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_STEPTRAITS_H
#define STAGE_TIME_STEPTRAITS_H

#include "stage/Time/TimedPart.h"

namespace stage {

struct StageTime;

struct StepTraits {
  bool trains = true;
  bool hasExperts = false; ///< Some op routes tokens.
  /// The narrowest type in which a product multiplies; nothing: there are no products.
  std::optional<DType> productType;
  const OpDef *otherContraction = nullptr; ///< An op that contracts and is neither a product nor attention, if any.
  int64_t numLocalExperts = 0;             ///< That a rank computes in one op, at most.
  bool waitsForCounts = false;             ///< The device waits for the host where tokens are routed.
  Ticks besideExchange = 0; ///< For so long tokens are exchanged beside other work, in the stage with most of it.
  Ticks launch = 0;         ///< Waiting for launches, likewise.
};

/// `stages`: what each of them does in the step.
StepTraits findTraits(llvm::ArrayRef<TimedPart> parts, llvm::ArrayRef<StageTime> stages);

} // namespace stage

#endif // STAGE_TIME_STEPTRAITS_H
