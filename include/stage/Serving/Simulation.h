//===- Simulation.h - a server, or several, in time ------------*- C++ -*-===//
//
// Deals requests to replicas as they arrive, and lets each replica run one iteration after
// the other; on a pipeline the next one begins when the first stage is free. How long an iteration lasts is asked of
// whoever knows what it costs; what happens is told to an observer, iteration by iteration, so that memory is
// for the requests that wait or run, however many there are. docs/Serving.md has the rules (S20 to S23, S36 to S39).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SERVING_SIMULATION_H
#define STAGE_SERVING_SIMULATION_H

#include "stage/Serving/Batching.h"

namespace stage::serving {

/// Which replica a request is for (S20).
enum class Dealing { RoundRobin, LeastLoaded };

struct SimulationOptions {
  BatchingOptions batching;
  unsigned replicas = 1; ///< That serve requests whole, or decode.
  /// If any: these compute prompts, and hand requests over with their caches to the others (S30).
  unsigned prefillReplicas = 0;
  /// Seconds that sending a cache takes: so many, and so many for each token.
  double sendTime = 0, sendTokenTime = 0;
  Dealing dealing = Dealing::RoundRobin;
  bool lockStep = false; ///< Replicas begin and end their iterations together, those that prefill apart (S22).
};

/// Seconds that an iteration may last.
inline constexpr int64_t maxIterationSeconds = 1'000'000;

/// Iterations that begin and end together: one per replica of a pool with lock-step, else that of one replica.
struct Step {
  int64_t number = 0;
  int64_t start = 0, duration = 0; ///< Nanoseconds since the first arrival; through all stages.
  int64_t busy = 0;                ///< Of the duration: in which no earlier iteration of these replicas was in flight.
  llvm::ArrayRef<Iteration> iterations;
};

class ServingObserver {
public:
  virtual ~ServingObserver();
  /// A step begins. It is there during the call.
  virtual void step(const Step &step) = 0;
  /// A request is complete.
  virtual void finished(const FinishedRequest &request) = 0;
};

/// How long iterations last that begin together: seconds from `begin`, in nanoseconds, until the last stage is through.
/// Sets until when each stage is busy, which it is with those before until `freeAt`. What is no time, or longer than
/// maxIterationSeconds, is reported; nothing: something was.
using IterationTime = llvm::function_ref<std::optional<double>(llvm::ArrayRef<Iteration>, int64_t begin,
                                                               llvm::MutableArrayRef<int64_t> freeAt)>;
/// The same where stages take so many seconds, and send nothing.
double passStages(llvm::function_ref<double(unsigned stage)> seconds, int64_t begin,
                  llvm::MutableArrayRef<int64_t> freeAt);

/// Serves all requests. False after a report, which may come after steps have been told: what an observer makes of them
/// must not be kept then.
bool simulate(RequestReader &requests, const SimulationOptions &options, IterationTime duration,
              ServingObserver &observer, DiagnosticEngine &diags);

} // namespace stage::serving

#endif // STAGE_SERVING_SIMULATION_H
