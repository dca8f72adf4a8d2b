//===- SentCaches.h - caches that one part fills for another ---*- C++ -*-===//
#ifndef STAGE_LIB_INTERP_SENTCACHES_H
#define STAGE_LIB_INTERP_SENTCACHES_H

#include "OpRunner.h"
#include "stage/IR/graph/Channel.h"

namespace stage::interp {

/// What caches hold, by the names that another graph of the same program has for them.
Caches rename(const Caches &caches, const Sources &known, Graph &graph, const Sources &wanted);
/// What the caches of the receiving part hold when all of the sender's have been sent, on one device: `filled` is what
/// the sender has left. Positions that nobody has filled are drawn.
Caches handOn(llvm::ArrayRef<std::unique_ptr<Channel>> channels, const Caches &filled, Sources &receiver);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_SENTCACHES_H
