//===- EncodeTask.h - a task as a node of a trace --------------*- C++ -*-===//
#ifndef STAGE_LIB_CODEGEN_ENCODETASK_H
#define STAGE_LIB_CODEGEN_ENCODETASK_H

#include "stage/CodeGen/NodeWriter.h"

namespace stage {

/// What the metadata of a trace say.
inline constexpr llvm::StringLiteral traceVersion = "1.0";

/// The node of a task, without lists of tensors. It points to what the task points to.
NodeFields encode(const Task &task);

} // namespace stage

#endif // STAGE_LIB_CODEGEN_ENCODETASK_H
