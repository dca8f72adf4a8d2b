//===- ServingCosts.h - what an iteration computes and reads ------*- C++ -*-===//
//
// What an iteration computes and reads on a rank is linear in the sums that it has:
//
//   {"flops": {"token": 17112760320, "area": 327680, "logit": 262668288},
//    "bytes": {"iteration": 17375428608, "token": 40960, "cached_token": 40960}}
//
// Llama 3 70B on 8 ranks: two FLOPs per weight and token, four per pair under the mask, layer and element of a query;
// all weights are read in each iteration, and the keys and values of cached tokens. How long that takes says a machine
// (stage/Machine/Machine.h). docs/Serving.md has the rules (S33, S34).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SERVING_SERVINGCOSTS_H
#define STAGE_SERVING_SERVINGCOSTS_H

#include "stage/Serving/Batching.h"

namespace stage::serving {

/// An amount of an iteration, on the rank that has most of it.
struct IterationCost {
  double perIteration = 0, perToken = 0, perCachedToken = 0, perPair = 0, perArea = 0, perSequence = 0, perLogit = 0;
  double evaluate(const Iteration &iteration) const;
  /// It is 0 for all iterations.
  bool isFree() const {
    return perIteration + perToken + perCachedToken + perPair + perArea + perSequence + perLogit == 0;
  }
};

struct ServingCosts {
  IterationCost flops, bytes;
};

/// Reads the costs of a file. False after a report.
bool readCosts(llvm::StringRef path, ServingCosts &result, DiagnosticEngine &diags);

} // namespace stage::serving

#endif // STAGE_SERVING_SERVINGCOSTS_H
