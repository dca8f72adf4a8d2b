//===- Timeline.h - when each node of the traces runs ----------*- C++ -*-===//
//
// Runs the traces of a folder by the simulator that `verify` runs them by, with times:
// the durations that they carry with surcharges (docs/Traces.md), or a unit for
// each node, or what its FLOPs and bytes take on a machine of given rates.
// Prints how long the step takes and what ranks do meanwhile, and writes, on request,
// the nodes of chosen ranks as Chrome trace events, which Perfetto and chrome://tracing
// show.
//
//   step: 11 units on 4 ranks
//   ranks  compute  communication  exposed  idle  idle %
//   0-3          8              0        0     3   27.27
//
// Times are kept in whole ticks: a picosecond, or a millionth of a unit. All of them are
// computed in integers, so that they are the same on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_TIMELINE_H
#define STAGE_TRACE_TIMELINE_H

#include "stage/Machine/Machine.h"
#include "stage/Support/Diagnostics.h"
#include "stage/Time/RankActivity.h"
#include <optional>

namespace stage::trace {

struct TimelineOptions {
  /// How long nodes take. Nothing: what the traces say with surcharges, where they carry durations, else a unit each.
  std::optional<Machine> machine;
  /// Inclusive ranges of ranks that are shown; none: all.
  std::vector<std::pair<int64_t, int64_t>> ranks;
  /// The file of trace events; empty: none.
  std::string output;
  /// Replace it if it exists.
  bool force = false;
  bool sendsAreBuffered = true;
  /// As on simulators that know no streams: copies take the place of a communication there, too.
  bool mergesStreams = false;
};

/// To the tick.
struct TimelineResult {
  StepActivity activity;
  Machine machine;              ///< By which nodes took times; rates of nothing where the traces carry durations.
  std::string machinesOfTraces; ///< `machine: h100, runtime: ideal`, where they do.
  std::vector<std::pair<uint32_t, uint32_t>> absent; ///< Ranks without traces, in inclusive ranges.
};

/// Runs the traces, and writes the file if one is asked for. Nothing after a report; no file is written then.
std::optional<TimelineResult> runTimeline(llvm::StringRef path, const TimelineOptions &options,
                                          DiagnosticEngine &diags);
/// Prints the summary, and writes the file if one is asked for. False after a report; no file is written then.
bool printTimeline(llvm::StringRef path, const TimelineOptions &options, llvm::raw_ostream &out,
                   DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_TIMELINE_H
