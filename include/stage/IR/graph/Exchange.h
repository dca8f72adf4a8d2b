//===- Exchange.h - which rank sends which piece to which ------*- C++ -*-===//
//
// Problem: a value moves from the ranks of a pipeline stage of one part to those of another part, where
// it is sharded in another way over other axes. Every rank gets all that it needs once,
// whoever holds it, and the ranks that hold it share the work.
//
//   from, dp = 2: {dp}               rank 0: rows 0 1 2 3    rank 1: rows 4 5 6 7
//   to, a = 2, b = 2: {(a, b)}       ranks 0, 1, 2, 3: two rows each
//   0 sends to 0 and 1, 1 sends to 2 and 3
//   to, a = 2, b = 2: {_}            ranks 0, 1, 2, 3: eight rows each, from both
//
// Caches of several batches of the one part may be the rows of one batch of the other:
//
//   from, dp = 2, two batches        rank 0: rows 0 1, then 4 5    rank 1: rows 2 3, then 6 7
//   to, a = 2: {a}                   rank 0: rows 0 1 2 3, all of the first batch; rank 1: the second
//
// Algorithm: the pieces of a sharding are numbered by what each dim is cut into. In each dim
// the one side is cut into parts of what the other is cut into: blocks by coordinate (4
// are parts of 2), or the same axes in the same layouts, and then more. What a rank needs is then part of one piece of
// the sender, or several of them. The n ranks that want some of a piece, in ascending order, get it from the k that
// hold it: number i from number i * k / n, so that no two of these send numbers that
// differ by more than 1. Where one of several exchanges leaves some with less to send than others, the next one begins
// `turn` ranks further on. Time and memory grow with ranks and messages; no pairs are compared.
//
// Limits: what is partial, stored flat or dealt out by a table is not sent, nor what both sides cut
// each in its own way, as into 2 and 3.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_EXCHANGE_H
#define STAGE_IR_GRAPH_EXCHANGE_H

#include "stage/IR/graph/Program.h"

namespace stage {

struct Exchange {
  const Program *from = nullptr, *to = nullptr;
  unsigned fromStage = 0, toStage = 0;
  /// So many batches of the sender, in order, are the rows of one of the receiver along this dim.
  unsigned batches = 1, batchDim = 0;
  unsigned turn = 0;

  // What connect() finds.
  unsigned numMessages = 1; ///< To a rank that receives, of all these batches.
  unsigned numCopies = 1;   ///< Ranks that hold the same.
  bool isEven = true;       ///< All of these send equally many messages.
  int64_t numParts = 1;     ///< Each message has such a part of the sender's piece, of one batch.
  struct Receiver {
    int64_t rank;
    unsigned message;
    bool operator==(const Receiver &other) const { return rank == other.rank && message == other.message; }
  };
  struct Sender {
    int64_t rank = 0;
    unsigned batch = 0;
  };
  /// From whom a rank, counted from 0 in its part, gets each message; nobody: it gets none.
  llvm::ArrayRef<Sender> getSenders(int64_t rank) const { return senders[rank]; }
  /// To whom a rank sends a message of a batch, of each batch equally many.
  llvm::ArrayRef<Receiver> getReceivers(int64_t rank, unsigned batch) const {
    return receivers[rank * batches + batch];
  }
  /// Most and fewest messages of a batch that a rank of the stage sends.
  std::pair<size_t, size_t> countMessages() const;

  std::vector<llvm::SmallVector<Sender, 1>> senders;
  std::vector<llvm::SmallVector<Receiver, 1>> receivers;
};

/// Finds senders and receivers. Why there are none, if what a rank needs is not part of what one rank holds; else
/// empty.
std::string connect(Exchange &exchange, const Sharding &held, const Sharding &needed);

/// The ranks of a part that are of a pipeline stage.
bool isOfStage(const Program &program, int64_t rank, unsigned stage);

} // namespace stage

#endif // STAGE_IR_GRAPH_EXCHANGE_H
