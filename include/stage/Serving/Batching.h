//===- Batching.h - which tokens an iteration computes ---------*- C++ -*-===//
//
// Problem: a server runs the model on some tokens of some requests at a time. Which ones
// follows from the requests, a budget of tokens, and the blocks of the cache:
//
//   token budget 512           i0  p0+512@0              request 0 has a prompt of 1,000
//   two requests               i1  p0+488@512 p1+24@0    what is left goes to request 1
//                              i2  p1+276@24 1d+1@1000   request 0 decodes beside it
//
// Algorithm: those that run come first, in the order in which they were admitted; one that
// finds no block takes the cache of the youngest. Then waiting ones are admitted, in
// order. docs/Serving.md has the rules (S7 to S19).
//
// On the stages of a pipeline several iterations are in flight: the next one takes tokens that are known and in none of
// them, of whom the last stage has yet to sample nothing, and takes blocks of nobody who is in flight (S36 to S38).
//
// Limits: blocks are counted, not numbered; requests share none.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SERVING_BATCHING_H
#define STAGE_SERVING_BATCHING_H

#include "stage/Serving/Requests.h"
#include <deque>
#include <memory>
#include <vector>

namespace stage::serving {

/// What must find room in the cache for a waiting request to be admitted (S10).
enum class Admission { Whole, Chunk };

/// What happens if a running request finds no free block (S14).
enum class Preemption { Recompute, Swap, Refuse };

struct BatchingOptions {
  int64_t tokenBudget = 2048; ///< Tokens of an iteration; at least 1 + drafts.
  int64_t maxSequences =
      256;             ///< Requests of an iteration, and that run at a time for each that may be in flight; at least 1.
  unsigned stages = 1; ///< Of a pipeline: as many iterations may be in flight.
  int64_t chunk = 0;   ///< Tokens of one request in an iteration, at least 1 + drafts; 0: no limit.
  int64_t block = 16;  ///< Tokens of a block of the cache.
  int64_t cacheBlocks = 0; ///< 0: no limit.
  Admission admission = Admission::Whole;
  Preemption preemption = Preemption::Recompute;
  int64_t prefixBlock = 512; ///< Tokens of a block of the store of prefixes (S28).
  int64_t prefixStore = -1;  ///< Blocks that it keeps; negative: no limit.
  int64_t drafts = 0;        ///< Tokens that are proposed for each sequence that decodes.
  /// The share of drafts that is accepted, a fraction of at most 1.
  int64_t acceptedDrafts = 0, ofDrafts = 1;
};

/// What an iteration computes of one request.
struct Sequence {
  int64_t request = 0;      ///< Its index.
  int64_t newTokens = 0;    ///< At least 1, drafts among them.
  int64_t cachedTokens = 0; ///< In the cache before.
  int64_t drafts = 0;
  bool samples = false; ///< All known tokens are computed then.
  bool decodes = false; ///< It sampled the one known token that is computed here; else: a chunk of a prompt.
};

/// Tokens whose keys and values are copied between the cache of a request and the host.
struct MovedTokens {
  int64_t request = 0, tokens = 0;
};

/// What a replica computes at once, and what that costs depends on. The sums are over `sequences`.
struct Iteration {
  int64_t number = 0; ///< From 0, in order of beginning.
  unsigned replica = 0;
  int64_t start = 0; ///< Nanoseconds since the first arrival.
  std::vector<Sequence> sequences;

  int64_t newTokens = 0;    ///< N: tokens that are computed.
  int64_t cachedTokens = 0; ///< C: tokens before them, whose keys and values are read.
  /// Pairs of a new token and one that it attends, itself among them: n c + n (n + 1) / 2 for n new tokens behind c
  /// cached ones.
  int64_t attendedPairs = 0;
  /// Twice the area under a causal mask, by which FLOPs of attention are counted: a triangle of side n has n n / 2, so
  /// that this is 2 n c + n n; one token alone is no triangle, and has 2 (c + 1).
  int64_t twiceArea = 0;
  int64_t sampling = 0;         ///< Sequences that sample.
  int64_t logits = 0;           ///< Positions whose logits are needed: one per sequence that samples, and its drafts.
  int64_t drafts = 0;           ///< Of the new tokens.
  int64_t loadedTokens = 0;     ///< Cached prefixes that are loaded before (S19).
  int64_t recomputedTokens = 0; ///< Of the new tokens: computed before, and lost by preemption.
  int64_t blocks = 0;           ///< Held during the iteration.
  int64_t blocksOut = 0;        ///< Copied to the host before.
  int64_t blocksIn = 0;         ///< Copied back before.
  int64_t preemptions = 0;      ///< Requests that gave up their cache before.
  /// Before it: caches in whole blocks that are swapped out, and prefixes that earlier ones have filled; caches that
  /// are swapped in, and prefixes that requests name.
  std::vector<MovedTokens> stored, loaded;
};

/// `i12 p3+512@1024 7d+7@9120` (S24); `showReplica` where there are several.
std::string getName(const Iteration &iteration, bool showReplica);

/// A request that is complete, or about to be handed over. Times are nanoseconds since the first arrival.
struct FinishedRequest {
  Request request;
  unsigned replica = 0;
  int64_t start = 0;      ///< The beginning of the first iteration that computes tokens of it.
  int64_t firstToken = 0; ///< The end of the one that sampled its first.
  int64_t end = 0;
  int64_t preemptions = 0;
  int64_t drafts = 0, accepted = 0;
};

class PrefixStore;

/// Batches the requests of one replica.
class Scheduler {
public:
  /// With `handsOver`, a request is done here when it has its first token (S30).
  explicit Scheduler(const BatchingOptions &options, unsigned replica = 0, bool handsOver = false);
  Scheduler(const Scheduler &) = delete;
  Scheduler(Scheduler &&) noexcept;
  ~Scheduler();

  /// Blocks that a request needs at most, alone (S15).
  static int64_t countBlocks(const Request &request, const BatchingOptions &options);

  /// The request waits behind all others. It must fit into an empty cache.
  void add(Request request);
  /// The same for one that has its first token and its cache from another replica, which is loaded when it is admitted.
  void addHandedOver(FinishedRequest facts);
  /// Requests that wait or run.
  size_t getNumRequests() const { return waiting.size() + running.size(); }

  /// What the next iteration has, which begins at `start`: nothing if there are no requests, or all wait for iterations
  /// in flight; it is not begun then. Null; or, where requests are not to be preempted, the running one that finds no
  /// block, and the iteration is not begun.
  const Request *begin(int64_t start, Iteration &iteration);
  /// The iteration that was begun first of those in flight ends. Calls `finished` for requests that are done here, in
  /// their order.
  void end(const Iteration &iteration, int64_t time, llvm::function_ref<void(const FinishedRequest &)> finished);

private:
  struct State {
    FinishedRequest facts;
    int64_t computed = 0;  ///< Tokens in the cache, be it on the host.
    int64_t begun = 0;     ///< These and, behind them, those of iterations in flight.
    int64_t generated = 0; ///< Tokens of the output.
    int64_t most = 0;      ///< Computed at most, so far.
    int64_t blocks = 0;    ///< Held.
    bool wasBegun = false, decodes = false, waitsForToken = false;
    bool isOnHost = false; ///< Its cache was swapped out.
    bool wasSent = false;  ///< Its cache has come from another replica, and waits with it.
    bool isInFlight() const { return begun > computed; }
  };
  using StatePtr = std::unique_ptr<State>;

  int64_t countNew(const State &state, int64_t begun, int64_t budget) const;
  int64_t countBlocks(int64_t tokens) const { return (tokens + options.block - 1) / options.block; }
  bool reserve(State &state, int64_t tokens);
  llvm::ArrayRef<int64_t> getPrefix(const Request &request, int64_t tokens) const;
  size_t findKept(size_t i, int64_t tokens) const;
  bool waitsForBlocks(size_t i, size_t kept) const;
  void preemptYoungest(Iteration &iteration);
  void admit(Iteration &iteration, int64_t budget);
  int64_t countSwapped(const State &state) const { return countBlocks(state.computed) * options.block; }
  void schedule(State &state, int64_t newTokens, Iteration &iteration) const;
  bool isFull(const Iteration &iteration) const { return int64_t(iteration.sequences.size()) == options.maxSequences; }

  BatchingOptions options;
  unsigned replica;
  bool handsOver;
  std::unique_ptr<PrefixStore> prefixes;
  std::vector<MovedTokens> filled; ///< Blocks for the store, which are copied there before the next iteration.
  std::vector<StatePtr> running;   ///< In the order in which they were admitted.
  std::deque<StatePtr> waiting;
  int64_t usedBlocks = 0;
  int64_t numInFlight = 0; ///< Iterations, but those in which there is nothing to do.
};

} // namespace stage::serving

#endif // STAGE_SERVING_BATCHING_H
