//===- CheckStageCount.h - whether each virtual stage gets iterations -*- C++ -*-===//
//
// Problem: a pipeline with more virtual stages than layers, or one that has layers left over, cannot be laid out. A
// search tries hundreds of such plans, and all passes before partition-pipeline would run for each in vain.
//
// Example: 126 layers on 32 stages with `interleaved(v = 4)`: 128 virtual stages.
//
// Limits: repeats that are not there, or whose iterations have no number, are left to partition-pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_PIPELINE_CHECKSTAGECOUNT_H
#define STAGE_TRANSFORMS_PIPELINE_CHECKSTAGECOUNT_H

namespace stage {
class DiagnosticEngine;
class Graph;

/// False after an error: fewer iterations of the pipelined repeats than virtual stages, or, without a `split`, a number
/// of iterations that virtual stages do not divide. A list `split` is read by partition-pipeline.
bool checkStageCount(const Graph &graph, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TRANSFORMS_PIPELINE_CHECKSTAGECOUNT_H
