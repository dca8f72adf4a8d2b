//===- Emit.h - from a program to traces -----------------------*- C++ -*-===//
//
// One execution trace per rank, and comm_group.json. Ranks with the same structure form a class
// (law L10): a class is lowered and encoded once, its ranks differ in the numbers of their groups and of their
// peers, and in sizes that depend on coordinates.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_CODEGEN_EMIT_H
#define STAGE_CODEGEN_EMIT_H

#include "stage/CodeGen/NodeWriter.h"
#include "stage/IR/graph/Channel.h"
#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/TaskDurations.h"

namespace stage {

class RuntimeMemory;

/// Is told how far emission is.
class EmitProgress {
public:
  virtual ~EmitProgress() = default;
  /// `done` of `total` ranks are encoded. From any thread, one at a time.
  virtual void update(size_t done, size_t total) = 0;
  /// Nothing more is written; messages may follow.
  virtual void finish() = 0;
};

struct EmitOptions : TaskOptions {
  std::string directory;
  std::string prefix = "workload";
  bool force = false;   ///< Replace a folder of traces.
  bool tracker = false; ///< `inputs` and `outputs` for simulators that track memory.
  unsigned jobs = 0;    ///< Threads; 0: one per core.
  /// Ranks to write, as inclusive ranges; empty: all.
  std::vector<std::pair<int64_t, int64_t>> ranks;
  /// What nodes say that they take; null: nothing.
  const TaskDurations *durations = nullptr;
  EmitProgress *progress = nullptr;
  const RuntimeMemory *memory = nullptr; ///< What software keeps, for `tracker`; null: nothing.
};

struct EmitStatistics {
  int64_t ranks = 0;   ///< Written.
  int64_t classes = 0; ///< Of all ranks.
  __int128 nodes = 0;  ///< Over the written ranks.
  __int128 bytes = 0;
  int64_t files = 0;
};

/// Whether traces may be of so many training steps. False after a report.
bool checkNumSteps(unsigned steps, DiagnosticEngine &diags);

/// Writes the traces. Nothing is left behind when it fails; every failure is reported.
std::optional<EmitStatistics> emitTraces(const Program &program, const EmitOptions &options, DiagnosticEngine &diags);

/// The same for all parts of a workload, whose ranks and groups are numbered one after the other.
std::optional<EmitStatistics> emitTraces(const LinkedProgram &program, const EmitOptions &options,
                                         DiagnosticEngine &diags);

/// What emitTraces would write with these options, to the byte, without doing it: in the time that the different units
/// of the classes take, whatever the number of ranks and microbatches. Nothing if the program has no traces: its
/// pipeline needs too many message tags. Of a program that is not a part of a workload.
std::optional<EmitStatistics> measureTraces(const Program &program, const EmitOptions &options,
                                            DiagnosticEngine &diags);

/// The bytes of a trace of tasks without slots, and of what each takes.
std::vector<uint8_t> encodeTrace(llvm::ArrayRef<Task> tasks, llvm::ArrayRef<TaskTimes> times);

} // namespace stage

#endif // STAGE_CODEGEN_EMIT_H
