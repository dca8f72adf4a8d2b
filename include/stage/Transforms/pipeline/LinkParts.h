//===- LinkParts.h - the programs of a workload, linked --------*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_PIPELINE_LINKPARTS_H
#define STAGE_TRANSFORMS_PIPELINE_LINKPARTS_H

#include "stage/IR/graph/Channel.h"

namespace stage {

/// Builds the program of each part, and adds to their templates what transfers send and receive. The programs refer to
/// the workload, which must outlive them unchanged. Null after errors: those of a part, a transfer between shardings of
/// which no rank can get its piece from one other, schedules that wait for each other for ever.
std::unique_ptr<LinkedProgram> linkParts(Workload &workload, DiagnosticEngine &diags);
/// The same, given the programs of all parts.
std::unique_ptr<LinkedProgram> linkParts(Workload &workload, std::vector<std::unique_ptr<Program>> parts,
                                         DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TRANSFORMS_PIPELINE_LINKPARTS_H
