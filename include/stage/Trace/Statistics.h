//===- Statistics.h - what is in the traces --------------------*- C++ -*-===//
//
// Counts nodes, FLOPs and bytes per rank and in total. Ranks with the same numbers
// share a row. Collectives are counted once per member: eight ranks that reduce once
// are eight calls, and their bytes are those of eight input buffers. On request nodes
// are counted by operator too, as far as they name it (`op_type`).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_STATISTICS_H
#define STAGE_TRACE_STATISTICS_H

#include "stage/Support/Diagnostics.h"

namespace stage::trace {

struct StatisticsOptions {
  /// JSON instead of tables.
  bool json = false;
  /// Also one row per group.
  bool perGroup = false;
  /// Also one row per `op_type`; nodes without one share a row.
  bool perOp = false;
};

/// Prints the statistics of a folder. False after a report.
bool printStatistics(llvm::StringRef path, const StatisticsOptions &options, llvm::raw_ostream &out,
                     DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_STATISTICS_H
