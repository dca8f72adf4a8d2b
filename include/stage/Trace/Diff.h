//===- Diff.h - where do two sets of traces differ? ------------*- C++ -*-===//
//
// Compares node by node, in the order of the files, and shows the first differing one
// of each rank:
//
//   rank 3: node number 17 differs
//   - 17 COMP "l0.qkv" is_cpu_op=false num_ops=1024 tensor_size=96
//   + 17 COMP "l0.qkv" is_cpu_op=false num_ops=2048 tensor_size=96
//
// Same bytes are the same; other encodings of the same nodes (gzip, attributes with
// defaults written out) are the same too.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_DIFF_H
#define STAGE_TRACE_DIFF_H

#include "stage/Support/Diagnostics.h"
#include <optional>

namespace stage::trace {

struct DiffOptions {
  /// Do not compare the names of nodes.
  bool ignoreNames = false;
  /// Ranks shown; the others are counted.
  unsigned maxShown = 10;
};

/// Compares two files or two folders. Whether they are the same; nothing after a report.
std::optional<bool> diffTraces(llvm::StringRef first, llvm::StringRef second, const DiffOptions &options,
                               llvm::raw_ostream &out, DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_DIFF_H
