//===- Merge.h - several jobs in one folder of traces ----------*- C++ -*-===//
//
// Jobs that share a network run side by side in one simulation. Their traces are copied into one folder, each job on
// ranks of its own:
//
//   a: ranks 0-1, group 1 = [0, 1]         merged: ranks 0-3
//   b: ranks 0-1, group 1 = [1, 0]                 group 1 = [0, 1], group 2 = [3, 2]
//
// What names ranks or groups is renamed: files, members of groups, peers of messages, groups of collectives. A
// collective of all ranks of its job, which names no group, gets a group. Ids, dependencies and tags stay as they are:
// they count within a rank, or are matched together with source and destination.
//
// Limits: traces of all ranks of each job are needed. Only what is renamed is checked; `verify` checks the rest.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_MERGE_H
#define STAGE_TRACE_MERGE_H

#include "stage/Support/Diagnostics.h"

namespace stage::trace {

struct MergeOptions {
  /// Folder to write; see OutputDirectory.
  std::string output;
  std::string prefix = "workload";
  bool force = false;
  /// Per job its ranks as ranges, the k-th for its rank k; with none each job begins where the one before ends.
  std::vector<std::string> ranks;
  /// Messages shown per code; the others are counted.
  unsigned maxShown = 10;
};

/// Writes the traces of the jobs in `folders` as one set. False after a report, and then there is no output.
bool mergeTraces(llvm::ArrayRef<std::string> folders, const MergeOptions &options, DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_MERGE_H
