//===- Channel.h - what two parts of a workload send each other -*- C++ -*-===//
//
// What moves is the result of an op, by a transfer (Workload.h), or a cache that one part has filled and
// the other one goes on with: in a repeat that of one iteration. Who sends what to whom is the
// matter of an Exchange; caches that are sharded alike share one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_CHANNEL_H
#define STAGE_IR_GRAPH_CHANNEL_H

#include "stage/IR/graph/Exchange.h"
#include "stage/IR/graph/Workload.h"

namespace stage {

/// From a pipeline stage of one part to one of another part.
struct Channel {
  unsigned number = 0; ///< Among all of a workload.
  std::shared_ptr<const Exchange> exchange;
  const Transfer *transfer = nullptr;              ///< Null: of a cache.
  const Value *output = nullptr, *input = nullptr; ///< As sender and receiver call it.
  int64_t bytes = 0;                               ///< Of each message.

  // Of a cache, or of what a prefill has sampled, with which the first steps begin: then `input` is fed (Op::isFed).
  bool isOfCache() const { return !transfer; }
  bool isOfTokens = false;
  int64_t iteration = -1;         ///< Of the repeat in which it stands.
  const Op *filler = nullptr;     ///< The append or write of the sender that leaves what is sent.
  bool isAtEnd = false;           ///< It is sent when its unit has computed everything; else when it is filled.
  const Stream *stream = nullptr; ///< Of the sender, on which it is sent.
  /// As many batches of the sender, and units that fill each, the last of which sends it.
  unsigned numBatches = 1, unitsOfBatch = 1;
  /// Of a unit of the sender.
  unsigned getBatch(unsigned microbatch) const { return microbatch / unitsOfBatch; }

  const Program &getFrom() const { return *exchange->from; }
  const Program &getTo() const { return *exchange->to; }
};

/// The programs of all parts of a workload, with what they send each other among their items.
struct LinkedProgram {
  std::vector<std::unique_ptr<Program>> parts;
  std::vector<std::unique_ptr<Channel>> channels;
};

} // namespace stage

#endif // STAGE_IR_GRAPH_CHANNEL_H
