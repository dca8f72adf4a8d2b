//===- MemoryTimeline.h - memory over a step --------------------*- C++ -*-===//
//
// Problem: a peak is one moment. How near do others come, what grows while a pipeline fills, and which tensor would
// have to go? A row for each stage, time to the right, what a rank holds upwards, stacked by class:
//
//            |        _____
//   80 GiB   |     __/     \__          temporaries, buffers
//            |  __/            \__       activations
//            | /------------------\     optimizer, gradients, parameters
//            0      1      2      3 s
//
// The same as a table, one line per node that runs; and as the snapshot that PyTorch's memory viewer reads, where each
// tensor is an allocation of the runtime's allocator, with its address.
//
// Rule: bytes are those of the report (stage/Memory/Allocations.h). Nodes are in the order of the program; each begins
// when its task does on the main lane of a rank, and what runs on other lanes changes memory in its place in that order
// (law L9). Without a machine each node takes as long as any other.
//
// Limits: of each stage the rank that holds most is shown. Memory of the host is not.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_MEMORYTIMELINE_H
#define STAGE_REPORT_MEMORYTIMELINE_H

#include "stage/Machine/Runtime.h"
#include "stage/Memory/Allocations.h"
#include "stage/Report/TimelinePicture.h"

namespace stage {

/// Memory over a step of a program. All that is referred to must outlive this.
struct MemoryTimeline {
  const MemoryReport *report;  ///< Of the program.
  const RuntimeMemory *memory; ///< What the runtime keeps; null: nothing.
  const Runtime *runtime;
  int64_t capacity;         ///< Bytes of a rank's device; 0: not known.
  const StepTimeline *step; ///< When nodes run; null: there is no machine.
  TimelineWindow window;    ///< In numbers of nodes if there is no machine.
};

/// As SVG.
void printSvg(llvm::raw_ostream &os, const MemoryTimeline &timeline, const PictureFrame &frame,
              DiagnosticEngine &diags);
/// As a table: `stage,unit,node,iteration,op,time_us,parameters,...,total`. Times are empty without a machine.
void printCsv(llvm::raw_ostream &os, const MemoryTimeline &timeline, DiagnosticEngine &diags);
/// As a snapshot of an allocator, a pickle; stages are devices. The runtime must have an allocator.
void printSnapshot(llvm::raw_ostream &os, const MemoryTimeline &timeline, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_REPORT_MEMORYTIMELINE_H
