//===- UnmatchedNames.h - names in rules that mean nothing -----*- C++ -*-===//
#ifndef STAGE_LIB_TRANSFORMS_UNMATCHEDNAMES_H
#define STAGE_LIB_TRANSFORMS_UNMATCHEDNAMES_H

#include "RuleTargets.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Warns of each name in the rules of a graph that matches nothing there, although its rule or statement matches
/// something.
void warnUnmatchedNames(const Graph &graph, RuleTargets &targets, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_UNMATCHEDNAMES_H
