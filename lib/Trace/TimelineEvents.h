//===- TimelineEvents.h - times of nodes as trace events -------*- C++ -*-===//
#ifndef STAGE_LIB_TRACE_TIMELINEEVENTS_H
#define STAGE_LIB_TRACE_TIMELINEEVENTS_H

#include "Simulation.h"

namespace stage::trace {

/// When the nodes of a rank ran, in ticks.
struct RankTimes {
  uint32_t slot;
  std::vector<int64_t> begin, end;
  /// Nodes that had their room before they began: collectives that waited for other ranks, and since when.
  std::vector<std::pair<NodeIndex, int64_t>> waits;
};

struct MessageTimes {
  uint32_t sender;
  NodeIndex send;
  uint32_t receiver;
  NodeIndex recv;
};

struct Timeline {
  const NodeTable &table;
  const Timing &timing;
  std::vector<RankTimes> ranks;       ///< Those that are shown, in their order.
  std::vector<MessageTimes> messages; ///< Between these.
  const RankTimes *find(uint32_t slot) const;
};

/// Prints trace events as JSON. False after a report: names and numbers of nodes are read from the files again.
bool printEvents(const Timeline &timeline, llvm::raw_ostream &out, DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_TIMELINEEVENTS_H
