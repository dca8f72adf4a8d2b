//===- Metrics.h - what a server achieved ----------------------*- C++ -*-===//
//
// Sums up the steps and requests of a simulation, and prints them as a table or as JSON.
// docs/Serving.md says what each number means (S25 to S27). Per complete request 32 bytes
// are kept, as percentiles are exact.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SERVING_METRICS_H
#define STAGE_SERVING_METRICS_H

#include "stage/Serving/Simulation.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace stage::serving {

class ServingMetrics : public ServingObserver {
public:
  explicit ServingMetrics(const SimulationOptions &options) : options(options) {}

  void step(const Step &step) override;
  void finished(const FinishedRequest &request) override;

  /// As a table for people; times in readable units.
  void print(llvm::raw_ostream &os);
  /// The members of a JSON object that is open; times in seconds, exactly.
  void printJson(llvm::json::OStream &json);

private:
  /// Durations of requests, in nanoseconds.
  struct Times {
    std::vector<int64_t> values;
    bool isSorted = false;
    int64_t getMean() const;
    int64_t getPercentile(int64_t percent);
  };
  using NamedTimes = std::pair<llvm::StringRef, Times *>;
  std::vector<NamedTimes> listTimes();
  /// Thousandths of something per second of the span, rounded down; nothing if there is no span.
  std::optional<__int128> perSecond(int64_t count) const;
  std::optional<__int128> getMeanBlocks() const;
  /// Thousandths of steps in flight while any is.
  std::optional<__int128> getMeanInFlight() const;

  SimulationOptions options;
  int64_t requests = 0, promptTokens = 0, outputTokens = 0, drafts = 0, accepted = 0;
  int64_t span = 0, steps = 0, busy = 0;
  __int128 duration = 0;  ///< Of all steps.
  int64_t iterations = 0; ///< With sequences.
  int64_t newTokens = 0, recomputed = 0, loaded = 0, sequences = 0, mostSequences = 0, preemptions = 0;
  int64_t blocksOut = 0, blocksIn = 0, mostBlocks = 0;
  __int128 cachedTokens = 0, blockTime = 0, iterationTime = 0;
  Times firstToken, perToken, queueing, latency;
};

} // namespace stage::serving

#endif // STAGE_SERVING_METRICS_H
