//===- EncodeTask.h - a task as a node of a trace --------------*- C++ -*-===//
#ifndef STAGE_LIB_CODEGEN_ENCODETASK_H
#define STAGE_LIB_CODEGEN_ENCODETASK_H

#include "stage/CodeGen/NodeWriter.h"
#include "stage/Time/TaskDurations.h"

namespace stage {

/// What the metadata of a rank's trace say; with `durations` also the machine and the runtime that they are of.
TraceMetadata getMetadata(const TaskDurations *durations, int64_t rank);

/// The node of a task, without lists of tensors. It points to what the task points to.
NodeFields encode(const Task &task);

} // namespace stage

#endif // STAGE_LIB_CODEGEN_ENCODETASK_H
