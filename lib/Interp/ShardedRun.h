//===- ShardedRun.h - every rank of a program, on one machine --*- C++ -*-===//
//
// Problem: execute the program as its ranks would, each with what it holds and no more.
//
//   rank 0: F0 ... send x ........ F1 ... recv x.grad, B0 ...
//   rank 1:        recv x, F0 ...
//
// Algorithm: ranks take turns. One goes on until it comes to a receive whose message is
// not there, or to a collective that not all members have come to; the last of them to
// come runs it for all. If a round moves nobody, the program is stuck.
//
// Sends are *buffered* (done at once) or *waiting* (rendezvous: done when the receiver
// has posted the receive, which it does one unit ahead, law L13). A send that waits holds
// up the collectives behind it, as communication is in order, and no compute. Both must
// finish; as they compute the same, only buffered runs compute.
//
// Every tensor that is not a partial sum is compared with the unsharded run as soon as
// it is made.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_SHARDEDRUN_H
#define STAGE_LIB_INTERP_SHARDEDRUN_H

#include "Findings.h"
#include <deque>

namespace stage {

enum class SendMode { Buffered, Waiting };

class ShardedRun {
public:
  ShardedRun(const Program &program, Sources &sources, const RankMemory &unsharded, const Rounding &rounding,
             Findings &findings, SendMode mode);

  /// False if it was stuck or met a fault.
  bool run(DiagnosticEngine &diags);
  llvm::ArrayRef<RankMemory> getMemories() const { return memories; }
  unsigned getStage(int64_t rank) const;

private:
  enum class Outcome { Done, Blocked, Failed };
  using Tag = std::tuple<int64_t, int64_t, unsigned, unsigned, unsigned, unsigned>;

  const Step *getStep(int64_t rank) const;
  Outcome advance(int64_t rank);
  Outcome runCollectiveStep(int64_t rank, const Step &step);
  Outcome send(int64_t rank, const Step &step);
  /// Completes the sends of a rank that need not wait any more. True if there were any.
  bool completeSends(int64_t rank);
  Outcome receive(int64_t rank, const Step &step);
  Outcome finish(std::optional<Fault> fault, int64_t rank, const Step &step);
  void compare(const Value *value, const Frame &frame, unsigned microbatch, int64_t rank);
  void compareUpdate(const Step &step, int64_t rank);
  int64_t getPeer(int64_t rank, unsigned virtualStage) const;
  void reportStuck(DiagnosticEngine &diags) const;

  const Program &program;
  Graph &graph;
  const RankMemory &unsharded;
  const Rounding &rounding;
  Findings &findings;
  SendMode mode;
  OpRunner runner;
  EnvironmentScope binding;
  std::vector<std::vector<Step>> steps; ///< Per stage.
  std::vector<size_t> position;         ///< Per rank.
  std::vector<RankMemory> memories;     ///< Per rank.
  std::map<Tag, TensorRef> mail;
  /// Sends that wait, per rank, in order. Empty if sends are buffered.
  std::vector<std::deque<const Step *>> waiting;
  /// Unit in which a stage receives (virtual stages from and to, microbatch).
  std::map<std::tuple<unsigned, unsigned, unsigned>, unsigned> receiveUnits;
};

} // namespace stage

#endif // STAGE_LIB_INTERP_SHARDEDRUN_H
