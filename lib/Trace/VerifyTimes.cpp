//===- VerifyTimes.cpp - durations, units and levels of nodes -------------===//
//
// Surcharges follow from the order of a rank's nodes, which is that of their ids, from their units, and from the levels
// of communications. Where a node carries a duration:
//
//   all nodes but recvs have one, and a unit; collectives and sends have a level; a recv has no duration
//   units do not go backwards
//   a node depends on nodes with lower ids
//
//===----------------------------------------------------------------------===//
#include "Simulation.h"
#include "stage/Trace/Diagnostics.h"

using namespace stage;
using namespace stage::trace;

static void verifyTimesOfRank(const NodeTable &table, uint32_t slot, FaultReporter &faults) {
  const RankTable &rank = table.ranks[slot];
  NodeIndex before = noNode; // the last node that says its unit
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    auto describe = [&] { return table.describe(slot, node); };
    for (NodeIndex dep : rank.getDeps(node))
      if (dep > node)
        faults.report(diag::DepBackwards, describe, rank.getId(dep));
    if (!rank.nodes[node].isUsable)
      continue; // what it lacks was reported
    TimeRecord time = rank.times[node];
    ChakraNodeType type = rank.nodes[node].type;
    if (getRoom(rank, node, Timing{}) != RoomKind::None) {
      if (time.duration < 0)
        faults.report(diag::TimeMissing, describe, "duration_picos");
      if (time.unit < 0)
        faults.report(diag::TimeMissing, describe, "unit");
      if ((type == ChakraNodeType::CommColl || type == ChakraNodeType::CommSend) &&
          rank.getCommunication(node).level == noLevel)
        faults.report(diag::TimeMissing, describe, "level");
    } else if (type == ChakraNodeType::CommRecv && time.duration >= 0) {
      faults.report(diag::TimeOfRecv, describe);
    }
    if (time.unit < 0)
      continue;
    if (before != noNode && time.unit < rank.times[before].unit)
      faults.report(diag::UnitBackwards, describe, int64_t(time.unit), rank.getId(before),
                    int64_t(rank.times[before].unit));
    else
      before = node;
  }
}

void stage::trace::verifyTimes(const NodeTable &table, FaultReporter &faults) {
  for (uint32_t slot = 0; slot < table.ranks.size(); ++slot)
    if (!table.ranks[slot].times.empty())
      verifyTimesOfRank(table, slot, faults);
}
