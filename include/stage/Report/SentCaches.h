//===- SentCaches.h - what a prefill sends to those that decode -*- C++ -*-===//
#ifndef STAGE_REPORT_SENTCACHES_H
#define STAGE_REPORT_SENTCACHES_H

#include "stage/IR/graph/Channel.h"
#include "stage/Report/Report.h"

namespace stage {

struct SentCaches {
  std::string from, to; ///< Names of the jobs.
  bool isAtEnd = false;
  int64_t sequences = 0;
  __int128 sequenceBytes = 0;       ///< Of the caches of all sequences, each byte once.
  __int128 messages = 0, bytes = 0; ///< That are sent; what several ranks keep is sent to each.
  /// What ranks send, or receive, from the one with fewest messages, and least bytes, to that with most.
  struct Share {
    int64_t ranks = 0;
    __int128 leastMessages = 0, mostMessages = 0, leastBytes = 0, mostBytes = 0;
  };
  Share sent, received;
  std::optional<TraceStatistics> traces; ///< Of all ranks, if they were written.
};

/// Adds up the messages of all ranks.
SentCaches countSentCaches(const LinkedProgram &pools, int64_t sequences);
/// Both reports, and what is sent.
void print(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent);
void printJson(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent);

} // namespace stage

#endif // STAGE_REPORT_SENTCACHES_H
