//===- CheckConstraints.h - what rules leave must be possible --*- C++ -*-===//
//
// Once all rules of a strategy have been applied: an axis splits one dim of a value, and an axis of more than one rank
// is used by some rule or annotation.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_CHECKCONSTRAINTS_H
#define STAGE_LIB_TRANSFORMS_CHECKCONSTRAINTS_H

#include "RuleTargets.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Reports what is not. `usedAxes` are those that rules use besides what the constraints say.
void checkConstraints(const Graph &graph, const RuleTargets &targets, AxisSet usedAxes, DiagnosticEngine &diags);

/// The name of a dim of a value in messages, or its size.
std::string getDimName(const Value &value, unsigned d);
/// The name of a value that a rule is about.
std::string getNameForRules(const Value &value);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_CHECKCONSTRAINTS_H
