//===- MachineRates.h - what a declared machine does in a second -*- C++ -*-===//
//
// Problem: a machine is declared in a program; tasks are priced by stage/Machine/Machine.h, which knows no programs.
//
//   stagec job.stg --emit=time                         the machine of the job, FLOPs of its activation type
//   stage-trace timeline traces --machine=h100         the machine of that name in the library, FLOPs of bf16
//   stage-trace timeline traces --machine=my.stg:mine --type=f32
//
// Both come to one MachineRates, so that both programs price a task alike.
//
// Limits: one element type has the FLOPs of all ops, since traces do not say the type of a node.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_MACHINERATES_H
#define STAGE_COMPILER_MACHINERATES_H

#include "stage/Compiler/Session.h"
#include "stage/Machine/Machine.h"
#include "stage/Machine/Runtime.h"
#include "stage/Sema/BoundMachine.h"
#include "stage/Sema/BoundRuntime.h"

namespace stage {

/// The rates of a machine that was bound. `type`: the element type whose FLOPs count. Nothing after a report that the
/// machine does not have it.
std::optional<MachineRates> makeRates(const sema::BoundMachine &machine, llvm::StringRef type, DiagnosticEngine &diags);

/// Those of the machine of a name that the main file of a session declares or imports. Nothing after a report to the
/// session.
std::optional<MachineRates> findRates(Session &session, llvm::StringRef name, llvm::StringRef type);

/// What the software of a job adds to these. Nothing: an ideal runtime, which adds nothing.
Runtime makeRuntime(const std::optional<sema::BoundRuntime> &runtime);

} // namespace stage

#endif // STAGE_COMPILER_MACHINERATES_H
