//===- Simulation.cpp - a server, or several, in time ---------------------===//
//
// Replicas that iterate together are a group: all of a pool with lock-step, else each for
// itself. Time goes from event to event, the next arrival of a request or of a cache or the
// end of an iteration, and at one time ends come first, then arrivals, then beginnings.
//
//===----------------------------------------------------------------------===//
#include "stage/Serving/Simulation.h"
#include "Timestamp.h"
#include "stage/Serving/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>

using namespace stage;

ServingObserver::~ServingObserver() = default;

/// An iteration that begins then ends before the last nanosecond.
constexpr int64_t latestBegin = maxTime - maxIterationSeconds * 1'000'000'000;

/// Nothing for what no iteration and no transfer lasts.
static std::optional<int64_t> toNanoseconds(double seconds) {
  if (!(seconds >= 0 && seconds <= double(maxIterationSeconds))) // nor what is no number
    return std::nullopt;
  return std::llround(seconds * 1e9);
}

namespace {
class Simulation {
public:
  Simulation(RequestReader &requests, const SimulationOptions &options,
             llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration, ServingObserver &observer,
             DiagnosticEngine &diags)
      : requests(requests), options(options), duration(duration), observer(observer), diags(diags),
        iterations(options.prefillReplicas + options.replicas) {
    for (unsigned i = 0; i < iterations.size(); ++i)
      replicas.emplace_back(options.batching, i, /*handsOver=*/i < options.prefillReplicas);
    llvm::MutableArrayRef<Scheduler> all(replicas);
    decoding.replicas = all.drop_front(options.prefillReplicas);
    prefilling.replicas = all.take_front(options.prefillReplicas);
    for (const Pool *pool : {&prefilling, &decoding})
      for (size_t i = 0, size = options.lockStep ? pool->replicas.size() : 1; i < pool->replicas.size(); i += size) {
        Group group;
        group.replicas = pool->replicas.slice(i, size);
        group.iterations = llvm::MutableArrayRef<Iteration>(iterations).slice(&group.replicas.front() - replicas.data(), size);
        groups.push_back(group);
      }
  }

  bool run() {
    readNext();
    while (std::optional<int64_t> time = findNextEvent()) {
      for (Group &group : groups)
        if (group.isRunning && group.end == *time && !end(group))
          return false;
      for (; next && next->arrival == *time; readNext())
        (prefilling.replicas.empty() ? decoding : prefilling).choose(options.dealing).add(*next);
      for (; !sent.empty() && sent.begin()->first.first == *time; sent.erase(sent.begin()))
        decoding.choose(options.dealing).addHandedOver(std::move(sent.begin()->second));
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
  /// Replicas that do the same.
  struct Pool {
    llvm::MutableArrayRef<Scheduler> replicas;
    size_t numDealt = 0;

    Scheduler &choose(Dealing dealing) {
      if (dealing == Dealing::RoundRobin)
        return replicas[numDealt++ % replicas.size()];
      return *std::min_element(replicas.begin(), replicas.end(), [](const Scheduler &a, const Scheduler &b) {
        return a.getNumRequests() < b.getNumRequests();
      });
    }
  };

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
    auto consider = [&](int64_t event) { time = std::min(time.value_or(event), event); };
    if (next)
      consider(next->arrival);
    if (!sent.empty())
      consider(sent.begin()->first.first);
    for (const Group &group : groups)
      if (group.isRunning)
        consider(group.end);
    return time;
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
    std::optional<int64_t> nanoseconds = toNanoseconds(seconds);
    if (!nanoseconds) {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::format("%g", seconds);
      diags.report(SMLoc(), diag::BadIterationTime) << numSteps << formatSeconds(time) << text << maxIterationSeconds;
      return false;
    }
    group.isRunning = true;
    group.end = time + *nanoseconds;
    observer.step({numSteps++, time, *nanoseconds, group.iterations});
    return true;
  }

  bool end(Group &group) {
    group.isRunning = false;
    bool isGood = true;
    auto finished = [&](const FinishedRequest &request) {
      if (request.request.output == 1 || request.replica >= options.prefillReplicas)
        observer.finished(request);
      else
        isGood &= send(request, group.end);
    };
    for (size_t i = 0; i < group.replicas.size(); ++i)
      group.replicas[i].end(group.iterations[i], group.end, finished);
    return isGood;
  }

  /// The cache of a prompt leaves for a replica that decodes.
  bool send(const FinishedRequest &request, int64_t time) {
    double seconds = options.sendTime + double(request.request.prompt) * options.sendTokenTime;
    std::optional<int64_t> nanoseconds = toNanoseconds(seconds);
    if (!nanoseconds) {
      requests.report(request.request, diag::BadSendTime) << maxIterationSeconds;
      return false;
    }
    sent.emplace(std::pair(time + *nanoseconds, request.request.index), request);
    return true;
  }

  RequestReader &requests;
  const SimulationOptions &options;
  llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration;
  ServingObserver &observer;
  DiagnosticEngine &diags;
  std::vector<Scheduler> replicas;
  std::vector<Iteration> iterations; ///< That each replica runs, or ran last.
  Pool prefilling, decoding;         ///< Requests are served whole by the latter where the former is empty.
  std::vector<Group> groups;
  std::optional<Request> next; ///< To arrive.
  /// On the way, by the time at which their caches arrive, and by index.
  std::map<std::pair<int64_t, int64_t>, FinishedRequest> sent;
  int64_t numSteps = 0;
};
} // namespace

bool stage::simulate(RequestReader &requests, const SimulationOptions &options,
                     llvm::function_ref<double(llvm::ArrayRef<Iteration>)> duration, ServingObserver &observer,
                     DiagnosticEngine &diags) {
  return Simulation(requests, options, duration, observer, diags).run();
}
