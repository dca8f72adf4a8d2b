//===- Replay.h - traces that take what the compiler says ------*- C++ -*-===//
//
// Problem: ASTRA-sim replays what computes by the durations of traces, but finds itself what communicates: by rings of
// messages on its network, which know neither what a machine measured nor that something else runs beside them. How
// does it take what the compiler takes, so that both can be compared?
//
//   all_gather of ranks 0 1 2 3, 20 us
//     round 1    10 us    send 10,000 bytes to the next rank, receive as many from the one before
//     round 2    10 us    send 10,000 bytes to the next but one, receive as many
//
// Rule: traces of their own, on a network of one dimension without latency that sends a byte in a nanosecond. A message
// has as many bytes as it takes nanoseconds. A collective is rounds of messages, after which all members go on: its
// duration after the last one came. The simulator finds when each task runs, from dependences and from busy streams.
//
// Algorithm: rounds of a dissemination barrier (Hensgen, Finkel and Manber, Int. J. Parallel Programming 17, 1988): in
// round k each member sends to the one 2^k places behind it, and goes on when its message has come and it has received
// one. After ceil(log2 g) rounds each has heard of all. Rounds divide the duration, to the nanosecond.
//
// A device of the simulator has one computation and one communication in flight. Where ranks have more than these two
// lanes (streams of a strategy, copies, what a host computes) each lane is a device of its own: lane d of rank r is
// device d * N + r of N ranks. What waits for a task of another lane waits for a message of a byte that follows the
// task, so that it is late by a nanosecond.
//
// Limits: what computes takes whole microseconds (TaskDurations.h): a chain is short of less than one. Messages of all
// ranks are in memory while traces are written.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_ASTRASIM_REPLAY_H
#define STAGE_ASTRASIM_REPLAY_H

#include "stage/CodeGen/Emit.h"
#include "stage/CodeGen/OutputDirectory.h"
#include <deque>

namespace stage::astrasim {

class Replay {
public:
  /// Traces are `<prefix>.<device>.et`.
  static constexpr llvm::StringLiteral prefix = "replay";

  /// Of the parts of a workload that is emitted with `options`, which have durations. All must outlive this.
  Replay(llvm::ArrayRef<const Program *> parts, const EmitOptions &options, DiagnosticEngine &diags);

  int64_t getNumDevices() const { return numRanks * numLanes; }
  /// The network on which they run.
  std::string makeNetworkFile() const;
  /// Writes the traces of all devices. False if that fails, which `output` reports.
  bool write(OutputDirectory &output);

private:
  /// What runs beside each other on a rank: streams, and kinds of work on each.
  using LaneKey = std::pair<uint64_t, unsigned>;
  static constexpr LaneKey computation{0, 0}, communication{0, 1};
  static LaneKey findLane(const Task &task);

  /// A task of a class.
  struct Step {
    TaskKind kind;
    LaneKey key;
    uint32_t unit;
    uint64_t micros, nanoseconds;
    TaskValue peer, tag, group;
    size_t endAwaited;                        ///< Behind the last one for which it waits, among those of all.
    unsigned lane = 0;                        ///< Of its key.
    llvm::SmallVector<unsigned, 2> consumers; ///< Other lanes on which tasks wait for it.
  };
  struct ClassSteps {
    std::vector<RankSlot> slots;
    std::vector<Step> steps;
    std::vector<uint64_t> awaited;
  };
  struct DeviceTrace;

  void collectSteps(unsigned classNumber);
  void numberLanes();
  std::vector<uint64_t> resolveSlots(int64_t rank, const ClassSteps &ofClass) const;
  size_t findPart(int64_t rank) const;
  uint64_t getDevice(uint64_t rank, unsigned lane) const { return lane * uint64_t(numRanks) + rank; }
  std::vector<DeviceTrace> makeTraces(int64_t rank);

  llvm::ArrayRef<const Program *> parts;
  const EmitOptions &options;
  DiagnosticEngine &diags;
  std::vector<GroupTable> tables; ///< By part.
  CommGroups groups;
  int64_t numRanks = 0;
  unsigned numLanes = 1;
  std::vector<ClassSteps> classes;
  struct Message {
    uint64_t nanoseconds;
    unsigned lane; ///< Of the sender.
  };
  /// Messages that were not received yet: by sender, receiver and tag, in order.
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::deque<Message>> sent;
};

} // namespace stage::astrasim

#endif // STAGE_ASTRASIM_REPLAY_H
