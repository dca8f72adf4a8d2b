//===- Simulation.h - a greedy simulator of traces -------------*- C++ -*-===//
//
// Does an execution finish? A rank has one compute and one communication in flight, and
// issues the lowest id among what is ready and has room; recvs need no room. Nodes that
// name a stream (`issue_stream`) have room there for one of each of their own. A copy to
// or from the host (MEM_LOAD, MEM_STORE) takes the room of a communication, as it does in
// ASTRA-sim, and ends by itself. A
// collective ends when all members of its group have issued it, a recv when its send
// has been issued. Two things are not known before the consumer is: whether a send ends
// by itself (buffered) or with its recv (rendezvous), and what takes longer, compute or
// communication. So there are four executions, all of which should finish.
//
// Algorithm: discrete events in two classes. What is instantaneous ends before anything
// slow does, so two queues stand for the clock. Work is proportional to nodes and
// dependencies (and the logarithm of how many are ready at once).
//
// Limits: time is two-valued; that every timing finishes follows for traces that chain
// their communication (L13), and is only made likely for others.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_SIMULATION_H
#define STAGE_LIB_TRACE_SIMULATION_H

#include "NodeTable.h"

namespace stage {

struct Timing {
  bool sendsAreBuffered;
  bool computeIsSlow;
  bool mergesStreams = false; ///< As consumers do that know of none.
};

/// Runs the traces. Reports a stall with what waits for what, and returns false then.
/// The table has passed verifyGraph and verifyCommunication without a fault.
bool simulate(const NodeTable &table, uint32_t numChannels, Timing timing, FaultReporter &faults);

} // namespace stage

#endif // STAGE_LIB_TRACE_SIMULATION_H
