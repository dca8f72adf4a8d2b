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
// has posted the receive, which it does one unit ahead or earlier, law L13). A send that waits holds
// up the collectives behind it, as communication is in order, and no compute. Both must
// finish; as they compute the same, only buffered runs compute.
//
// The parts of a workload run together: each run has the ranks of one, and all share the
// messages between parts.
//
// Every tensor that is not a partial sum is compared with the unsharded run as soon as
// it is made.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_SHARDEDRUN_H
#define STAGE_LIB_INTERP_SHARDEDRUN_H

#include "Findings.h"
#include "stage/IR/graph/Channel.h"
#include <deque>

namespace stage::interp {

enum class SendMode { Buffered, Waiting };

class ShardedRun;

/// What parts that run together have sent each other: by channel, microbatch of the receiver, receiving rank of its
/// part and number of the message to it.
struct PartMail {
  std::map<std::tuple<unsigned, unsigned, int64_t, unsigned>, TensorRef> messages;
  llvm::DenseMap<const Program *, const ShardedRun *> runs;
};

class ShardedRun {
public:
  ShardedRun(const Program &program, Sources &sources, const RankMemory &unsharded, const Rounding &rounding,
             Findings &findings, SendMode mode, PartMail &partMail);

  /// Runs the parts of a workload, or the one part. False if they were stuck or met a fault.
  static bool run(llvm::ArrayRef<std::unique_ptr<ShardedRun>> parts, DiagnosticEngine &diags);
  llvm::ArrayRef<RankMemory> getMemories() const { return memories; }
  /// Begins with the parameters that another run, of the step before, has left on each rank.
  using Updates = std::map<std::pair<const Value *, uint64_t>, TensorRef>;
  void startFrom(llvm::ArrayRef<Updates> updated) {
    for (auto [memory, ofRank] : llvm::zip(memories, updated))
      memory.stored = ofRank;
  }
  unsigned getStage(int64_t rank) const;

private:
  enum class Outcome { Done, Blocked, Failed };
  using Tag = std::tuple<int64_t, int64_t, unsigned, unsigned, unsigned, unsigned>;

  const Step *getStep(int64_t rank) const;
  /// Each rank goes on as far as it can. Nothing after a fault; else whether any did.
  std::optional<bool> goRound();
  bool isDone() const;
  /// A rank has come to where it posts its recv.
  bool hasPosted(const Channel &channel, unsigned microbatch, int64_t rank) const;
  Outcome advance(int64_t rank);
  Outcome runCollectiveStep(int64_t rank, const Step &step);
  Outcome send(int64_t rank, const Step &step);
  /// Completes the sends of a rank that need not wait any more. True if there were any.
  bool completeSends(int64_t rank);
  TensorRef join(const Channel &channel, int64_t rank);
  // SentCaches.cpp
  static llvm::ArrayRef<Exchange::Receiver> listReceivers(const Channel &channel, const Step &step, int64_t rank);
  static unsigned getReceivingMicrobatch(const Channel &channel, const Step &step);
  std::optional<Fault> sendCache(const Channel &channel, const Step &step, const Tensor &held,
                                 const Exchange::Receiver &receiver);
  std::optional<Fault> receiveCache(int64_t rank, const Step &step);
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
  PartMail &partMail;
  std::vector<std::vector<TensorRef>> arrived; ///< Per rank: messages of one that is not complete.
  /// A send, and to which of the receivers of its channel.
  struct WaitingSend {
    const Step *step;
    unsigned receiver = 0;
  };
  /// Sends that wait, per rank, in order. Empty if sends are buffered.
  std::vector<std::deque<WaitingSend>> waiting;
  /// The unit from which on a stage is ready to receive (virtual stages from and to, microbatch).
  std::map<std::tuple<unsigned, unsigned, unsigned>, unsigned> receiveUnits;
  /// The same by channel and microbatch.
  std::map<std::pair<unsigned, unsigned>, unsigned> transferUnits;
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_SHARDEDRUN_H
