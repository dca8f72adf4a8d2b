//===- RuleOrigin.h - which of two rules wins ------------------*- C++ -*-===//
//
// A strategy calls others, and a job adds parts to its strategy:
//
//   strategy s(tp) { mesh (tp); a(); shard B over tp; }       job: strategy = s(tp = 8) with b();
//
// Where two rules contradict each other, a strategy's own rules win over those of its calls, and what stands to the
// right of `with` over what stands to the left. Two calls of one strategy are equal: neither wins.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_RULEORIGIN_H
#define STAGE_SUPPORT_RULEORIGIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace stage {

struct RuleOrigin {
  unsigned addition = 0; ///< Of the job's `with`, from 1; 0: the strategy itself.
  /// Numbers of calls, from the job's strategy, or the added part, down to the one that says the rule.
  llvm::SmallVector<unsigned, 2> calls;

  bool isPlain() const { return !addition && calls.empty(); }
  bool operator==(const RuleOrigin &other) const { return addition == other.addition && calls == other.calls; }
  bool winsOver(const RuleOrigin &other) const {
    if (addition != other.addition)
      return addition > other.addition;
    return calls.size() < other.calls.size() &&
           llvm::makeArrayRef(other.calls).take_front(calls.size()) == llvm::makeArrayRef(calls);
  }
};

} // namespace stage

#endif // STAGE_SUPPORT_RULEORIGIN_H
