//===- RuleConditions.h - which parameter a rule depends on ----*- C++ -*-===//
#ifndef STAGE_LIB_COMPILER_RULECONDITIONS_H
#define STAGE_LIB_COMPILER_RULECONDITIONS_H

#include "stage/Compiler/Compilation.h"

namespace stage {

/// Where a size does not divide as a rule asks: says which parameter of the strategy leaves the rule out.
void noteRuleConditions(Compilation &c);

} // namespace stage

#endif // STAGE_LIB_COMPILER_RULECONDITIONS_H
