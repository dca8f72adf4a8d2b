//===- Simulation.h - a greedy simulator of traces -------------*- C++ -*-===//
//
// One simulator says whether traces finish (`verify`) and when each node runs
// (`timeline`). A rank has one compute and one communication in flight, and
// issues the lowest id among what is ready and has room; recvs need no room. Nodes that
// name a stream (`issue_stream`) have room there for one of each of their own. A copy to
// or from the host (MEM_LOAD, MEM_STORE) takes the room of a communication, as it does in
// ASTRA-sim, or has room of its own, and ends by itself. A
// collective begins when all members of its group have issued it; a message begins when its
// send is issued, and its recv ends when it has arrived.
//
// How long a node takes is asked of the caller. Three things are not known to `verify`
// before the consumer is: whether a send ends
// by itself (buffered) or with its recv (rendezvous), and what takes longer, compute or
// communication. So it runs four executions, all of which should finish: there one of the
// two takes no time.
//
// Algorithm: discrete events. All that ends at an instant ends before anything is issued
// at it, so that times do not depend on the order in which ranks are looked at. What
// takes no time ends at the instant it begins, in a round after. Work is proportional to
// nodes and dependencies (and the logarithm of how many are ready, or end at different
// times, at once).
//
// Limits: that every timing finishes follows for traces that chain
// their communication (L13), and is only made likely for others.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_SIMULATION_H
#define STAGE_LIB_TRACE_SIMULATION_H

#include "NodeTable.h"

namespace stage::trace {

/// What holds one node at a time, on each stream of a rank. A recv takes none, and neither do nodes that stand for no
/// work.
enum class RoomKind : uint8_t { Compute, HostCompute, Communication, Copy, None };
inline constexpr unsigned numRoomKinds = unsigned(RoomKind::None);

struct Timing {
  /// How long a node takes from the moment at which it begins, at least 0; of a recv, if its send is absent. A
  /// collective takes the longest of what its members say.
  llvm::function_ref<int64_t(uint32_t slot, NodeIndex node)> duration;
  bool sendsAreBuffered = true;
  bool mergesStreams = false;  ///< As consumers do that know of none.
  bool copiesShareRoom = true; ///< With communication, as in ASTRA-sim.
  llvm::StringRef description; ///< `buffered sends and slow compute`
};

/// The room that a node takes.
RoomKind getRoom(const RankTable &rank, NodeIndex node, const Timing &timing);

/// Is told when nodes run.
class ExecutionRecorder {
public:
  virtual ~ExecutionRecorder() = default;
  /// A node that has its room from `issued` on, and does what it does from `begin` to `end`. Of a recv: from when both
  /// it is posted and the message is on its way.
  virtual void run(uint32_t slot, NodeIndex node, int64_t issued, int64_t begin, int64_t end) = 0;
  virtual void deliver(uint32_t sender, NodeIndex send, uint32_t receiver, NodeIndex recv) = 0;
};

/// Runs the traces. Reports a stall with what waits for what, and returns false then.
/// The table has passed verifyGraph and verifyCommunication without a fault.
bool simulate(const NodeTable &table, uint32_t numChannels, const Timing &timing, FaultReporter &faults,
              ExecutionRecorder *recorder = nullptr);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_SIMULATION_H
