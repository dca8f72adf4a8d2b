//===- Simulation.cpp - a server, or several, in time ---------------------===//
//
// Replicas that iterate together are a group: all of them with lock-step, else each for
// itself. Time goes from event to event, the next arrival or the end of an iteration, and at
// one time ends come first, then arrivals, then beginnings.
//
//===----------------------------------------------------------------------===//
#include "stage/Serving/Simulation.h"
#include "Timestamp.h"
#include "stage/Serving/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace stage;

ServingObserver::~ServingObserver() = default;

/// An iteration that begins then ends before the last nanosecond.
constexpr int64_t latestBegin = maxTime - maxIterationSeconds * 1'000'000'000;

namespace {
class Simulation {
public:
  Simulation(RequestReader &requests, const SimulationOptions &options,
             llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration, ServingObserver &observer,
             DiagnosticEngine &diags)
      : requests(requests), options(options), duration(duration), observer(observer), diags(diags),
        iterations(options.replicas), groups(options.lockStep ? 1 : options.replicas) {
    for (unsigned i = 0; i < options.replicas; ++i)
      replicas.emplace_back(options.batching, i);
    size_t size = options.replicas / groups.size();
    for (size_t i = 0; i < groups.size(); ++i) {
      groups[i].replicas = llvm::MutableArrayRef<Scheduler>(replicas).slice(i * size, size);
      groups[i].iterations = llvm::MutableArrayRef<Iteration>(iterations).slice(i * size, size);
    }
  }

  bool run() {
    readNext();
    while (std::optional<int64_t> time = findNextEvent()) {
      for (Group &group : groups)
        if (group.isRunning && group.end == *time)
          end(group);
      for (; next && next->arrival == *time; readNext())
        deal(*next);
      // A fault further down in the file: nothing of it is served.
      if (requests.hasErrors())
        return false;
      for (Group &group : groups)
        if (!group.isRunning && group.hasRequests() && !begin(group, *time))
          return false;
    }
    return !requests.hasErrors();
  }

private:
  /// Replicas whose iterations begin and end together.
  struct Group {
    llvm::MutableArrayRef<Scheduler> replicas;
    llvm::MutableArrayRef<Iteration> iterations;
    bool isRunning = false;
    int64_t end = 0;

    bool hasRequests() const {
      return llvm::any_of(replicas, [](const Scheduler &replica) { return replica.getNumRequests() != 0; });
    }
  };

  void readNext() {
    next = requests.next([&](const Request &request) {
      int64_t needed = Scheduler::countBlocks(request, options.batching);
      if (options.batching.cacheBlocks == 0 || needed <= options.batching.cacheBlocks)
        return true;
      requests.report(request, diag::RequestNeverFits) << needed << options.batching.block << options.batching.cacheBlocks;
      return false;
    });
  }

  std::optional<int64_t> findNextEvent() const {
    std::optional<int64_t> time;
    if (next)
      time = next->arrival;
    for (const Group &group : groups)
      if (group.isRunning)
        time = std::min(time.value_or(group.end), group.end);
    return time;
  }

  void deal(const Request &request) {
    size_t replica = size_t(request.index) % replicas.size();
    if (options.dealing == Dealing::LeastLoaded) {
      auto least = std::min_element(replicas.begin(), replicas.end(), [](const Scheduler &a, const Scheduler &b) {
        return a.getNumRequests() < b.getNumRequests();
      });
      replica = size_t(least - replicas.begin());
    }
    replicas[replica].add(request);
  }

  bool begin(Group &group, int64_t time) {
    for (size_t i = 0; i < group.replicas.size(); ++i) {
      const Request *stuck = group.replicas[i].begin(time, group.iterations[i]);
      if (stuck) {
        requests.report(*stuck, diag::CacheFull) << numSteps;
        return false;
      }
      group.iterations[i].number = numSteps;
    }
    if (time > latestBegin) {
      diags.report(SMLoc(), diag::ServingTooLong) << numSteps << formatSeconds(time) << formatSeconds(latestBegin);
      return false;
    }
    double seconds = duration(group.iterations);
    if (!(seconds >= 0 && seconds <= double(maxIterationSeconds))) { // nor what is no number
      std::string text;
      llvm::raw_string_ostream(text) << llvm::format("%g", seconds);
      diags.report(SMLoc(), diag::BadIterationTime) << numSteps << formatSeconds(time) << text << maxIterationSeconds;
      return false;
    }
    int64_t nanoseconds = std::llround(seconds * 1e9);
    group.isRunning = true;
    group.end = time + nanoseconds;
    observer.step({numSteps++, time, nanoseconds, group.iterations});
    return true;
  }

  void end(Group &group) {
    group.isRunning = false;
    for (size_t i = 0; i < group.replicas.size(); ++i)
      group.replicas[i].end(group.iterations[i], group.end,
                            [&](const FinishedRequest &request) { observer.finished(request); });
  }

  RequestReader &requests;
  const SimulationOptions &options;
  llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration;
  ServingObserver &observer;
  DiagnosticEngine &diags;
  std::vector<Scheduler> replicas;
  std::vector<Iteration> iterations; ///< That each replica runs, or ran last.
  std::vector<Group> groups;
  std::optional<Request> next; ///< To arrive.
  int64_t numSteps = 0;
};
} // namespace

bool stage::simulate(RequestReader &requests, const SimulationOptions &options,
                     llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration, ServingObserver &observer,
                     DiagnosticEngine &diags) {
  return Simulation(requests, options, duration, observer, diags).run();
}
