//===- RuleCalls.h - which calls a rule comes through ----------*- C++ -*-===//
#ifndef STAGE_LIB_TRANSFORMS_RULECALLS_H
#define STAGE_LIB_TRANSFORMS_RULECALLS_H

#include "stage/IR/graph/Rule.h"
#include "stage/Transforms/Diagnostics.h"

namespace stage {

/// Adds to a message about a rule the calls that lead to the strategy that says it, if that is not the job's own.
inline void noteCalls(DiagnosticBuilder &message, const Rule &rule) {
  if (!rule.calls.empty())
    message.note(rule.callLoc, diag::RuleOfCall) << rule.calls;
}
inline void noteCalls(DiagnosticBuilder &&message, const Rule &rule) { noteCalls(message, rule); }

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_RULECALLS_H
