//===- PlanStores.h - what plans of a session have in common ---*- C++ -*-===//
//
// Parts of a compilation that many plans have alike, beside files, sizes and models (Session.h). Each is found by all
// that it depends on, so that a plan is the same with and without plans before it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_PLANSTORES_H
#define STAGE_COMPILER_PLANSTORES_H

#include "stage/Compiler/KnownGraphs.h"
#include "stage/Schedule/KnownSchedules.h"

namespace stage {

struct PlanStores {
  KnownSchedules schedules; ///< That need no second check.
  KnownGraphs graphs;       ///< That schedules have in common.
};

} // namespace stage

#endif // STAGE_COMPILER_PLANSTORES_H
