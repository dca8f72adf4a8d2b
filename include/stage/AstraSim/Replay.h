//===- Replay.h - traces that take what the compiler says ------*- C++ -*-===//
//
// Problem: ASTRA-sim replays what computes by the durations of traces, but finds itself what communicates: by rings of
// messages on its network, which know neither what a machine measured nor that something else runs beside them. How
// does it take what the compiler takes, so that both can be compared?
//
//   all_gather of ranks 0 1 2 3, 20 us         round 1    send 10,000 bytes to the next rank, receive as many       10
//   us
//                                              round 2    send 10,000 bytes to the next but one, likewise           10
//                                              us
//
// Rule: traces of their own, on a network of one dimension without latency that sends a byte in a nanosecond. A message
// has as many bytes as it takes nanoseconds. A collective is rounds of messages, after which all members go on: its
// duration after the last one came. The simulator finds what waits for what, who meets whom, and what has room.
//
// Algorithm: rounds of a dissemination barrier (Hensgen, Finkel and Manber, Int. J. Parallel Programming 17, 1988): in
// round k each member sends to the one 2^k places behind it, and goes on when its message has come and it has received
// one. After ceil(log2 g) rounds each has heard of all. Rounds divide the duration, to the nanosecond.
//
// A copy to or from the host is what a host computes, since ASTRA-sim knows no stream of copies. What computes takes
// whole microseconds (TaskDurations.h): a chain is short of less than one.
//
// Limits: one communication of a rank at a time, as ASTRA-sim has it: a strategy with streams needs --streams=one. What
// the host computes and what is copied wait for each other.
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
  /// Traces are `<prefix>.<rank>.et`.
  static constexpr llvm::StringLiteral prefix = "replay";

  /// Of the parts of a workload that is emitted with `options`, which have durations. All must outlive this.
  Replay(llvm::ArrayRef<const Program *> parts, const EmitOptions &options, DiagnosticEngine &diags);

  /// Writes the traces of all ranks. False if that fails, which `output` reports.
  bool write(OutputDirectory &output);
  /// The network on which they run.
  std::string makeNetworkFile() const;

private:
  /// A task of a class.
  struct Step {
    TaskKind kind;
    bool onHost;
    uint32_t unit;
    uint64_t micros, nanoseconds;
    TaskValue peer, tag, group;
    size_t endAwaited; ///< Behind the last one for which it waits, among those of all.
  };
  struct ClassSteps {
    std::vector<RankSlot> slots;
    std::vector<Step> steps;
    std::vector<uint64_t> awaited;
  };
  struct RankTrace;

  void collectSteps(unsigned classNumber);
  std::vector<uint64_t> resolveSlots(int64_t rank, const ClassSteps &ofClass) const;
  size_t findPart(int64_t rank) const;
  std::vector<uint8_t> encode(int64_t rank);

  llvm::ArrayRef<const Program *> parts;
  const EmitOptions &options;
  DiagnosticEngine &diags;
  std::vector<GroupTable> tables; ///< By part.
  CommGroups groups;
  int64_t numRanks = 0;
  std::vector<ClassSteps> classes;
  /// Nanoseconds of messages that were not received yet: by sender, receiver and tag, in order.
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::deque<uint64_t>> sent;
};

} // namespace stage::astrasim

#endif // STAGE_ASTRASIM_REPLAY_H
