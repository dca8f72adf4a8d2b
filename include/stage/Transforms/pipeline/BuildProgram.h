//===- BuildProgram.h - from graph IR to program IR ------------*- C++ -*-===//
//
// The last pass over the graph: lists, per pipeline stage, the units of its schedule
// and the template of each. The graph must have been through partition-pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_PIPELINE_BUILDPROGRAM_H
#define STAGE_TRANSFORMS_PIPELINE_BUILDPROGRAM_H

#include "stage/IR/graph/Program.h"
#include "stage/Schedule/Schedule.h"

namespace stage {

class KnownSchedules;

/// The program refers to the graph, which must outlive it unchanged. Null after errors: a schedule whose units cannot
/// be read, do not fit the pipeline, or would never finish. `known`: of other graphs; null: there is none.
std::unique_ptr<Program> buildProgram(Graph &graph, DiagnosticEngine &diags, KnownSchedules *known = nullptr);

/// Whether units of a template take part in collectives, which stand in one order with what they send.
bool communicatesInGroups(const UnitTemplate &unit);

} // namespace stage

#endif // STAGE_TRANSFORMS_PIPELINE_BUILDPROGRAM_H
