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

/// Whether blocks of an index of an op may go round over these axes, as a rule says: what they add up to can be merged,
/// and the gradient of each can be told from what forward saves.
bool checkRing(Graph &graph, const Rule &rule, const Op &op, unsigned index, llvm::ArrayRef<PlacedAxis> axes,
               DiagnosticEngine &diags);
/// Ranks that have the same part of all other indices of an op would do the same with each block.
void checkRingRows(const Graph &graph, const Op &op, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_CHECKCONSTRAINTS_H
