//===- Channel.h - who sends what to whom between two parts ----*- C++ -*-===//
//
// Problem: a transfer moves a value from the ranks of one part to those of another, where
// it is sharded in another way over other axes. Every rank gets all that it needs once,
// whoever holds it, and the ranks that hold it share the work.
//
//   Encoder, dp = 2: %y {dp}               rank 0: rows 0 1 2 3    rank 1: rows 4 5 6 7
//   Decoder, a = 2, b = 2: %x {(a, b)}     ranks 2, 3, 4, 5: two rows each
//   0 sends to 2 and 3, 1 sends to 4 and 5
//   Decoder, a = 2, b = 2: %x {_}          ranks 2, 3, 4, 5: eight rows each, from both
//
// Algorithm: the pieces of a sharding are numbered by what each dim is cut into. In each dim
// the one side is cut into parts of what the other is cut into: blocks by coordinate (4
// are parts of 2), or the same axes in the same layouts, and then more. What a rank needs is then part of one piece of
// the sender, or several of them. The n ranks that want some of a piece, in ascending order, get it from the k that
// hold it: number i from number i * k / n, so that no two of these send numbers that
// differ by more than 1.
//
// Limits: what is partial, stored flat or dealt out by a table is not sent, nor what both sides cut
// each in its own way, as into 2 and 3.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_CHANNEL_H
#define STAGE_IR_CHANNEL_H

#include "stage/IR/Program.h"
#include "stage/IR/Workload.h"

namespace stage {

/// A transfer from the pipeline stage that makes the value to one that uses it.
struct Channel {
  unsigned number = 0; ///< Among all of a workload.
  const Transfer *transfer = nullptr;
  const Program *from = nullptr, *to = nullptr;
  unsigned fromStage = 0, toStage = 0;
  const Value *output = nullptr, *input = nullptr;
  unsigned numMessages = 1; ///< To a rank that receives, in each microbatch.
  int64_t bytes = 0;        ///< Of each.
  /// One of the messages to a rank.
  struct Receiver {
    int64_t rank;
    unsigned message;
  };
  /// By rank of its part, counted from 0: from whom a rank gets each message (nobody: it gets none), and what a rank sends.
  std::vector<llvm::SmallVector<int64_t, 1>> senders;
  std::vector<llvm::SmallVector<Receiver, 1>> receivers;

  /// Most and fewest messages per microbatch of a rank of the stage that sends.
  std::pair<size_t, size_t> countMessages() const;
};

/// Finds senders and receivers. Why there are none, if what a rank needs is not part of what one rank holds; else empty.
std::string connect(Channel &channel);

/// The programs of all parts of a workload, with what they send each other among their items.
struct LinkedProgram {
  std::vector<std::unique_ptr<Program>> parts;
  std::vector<std::unique_ptr<Channel>> channels;
};

/// The ranks of a part that are of a pipeline stage.
bool isOfStage(const Program &program, int64_t rank, unsigned stage);

} // namespace stage

#endif // STAGE_IR_CHANNEL_H
