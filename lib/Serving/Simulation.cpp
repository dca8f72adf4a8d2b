//===- Simulation.cpp - a server, or several, in time ---------------------===//
//
// Replicas that iterate together are a group: all of a pool with lock-step, else each for
// itself. Time goes from event to event, the next arrival of a request or of a cache or the
// end of an iteration, and at one time ends come first, then arrivals, then beginnings.
//
// Stages work on the iterations of a group in the order in which these began, so that they end in it, too: one that begins
// knows when it will be through all stages.
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
  Simulation(RequestReader &requests, const SimulationOptions &options, StageTime duration, ServingObserver &observer,
             DiagnosticEngine &diags)
      : requests(requests), options(options), duration(duration), observer(observer), diags(diags) {
    for (unsigned i = 0; i < options.prefillReplicas + options.replicas; ++i)
      replicas.emplace_back(options.batching, i, /*handsOver=*/i < options.prefillReplicas);
    llvm::MutableArrayRef<Scheduler> all(replicas);
    decoding.replicas = all.drop_front(options.prefillReplicas);
    prefilling.replicas = all.take_front(options.prefillReplicas);
    for (const Pool *pool : {&prefilling, &decoding})
      for (size_t i = 0, size = options.lockStep ? pool->replicas.size() : 1; i < pool->replicas.size(); i += size) {
        Group group;
        group.replicas = pool->replicas.slice(i, size);
        group.freeAt.resize(options.batching.stages);
        groups.push_back(std::move(group));
      }
  }

  bool run() {
    readNext();
    while (std::optional<int64_t> time = findNextEvent()) {
      now = *time;
      for (Group &group : groups)
        while (!group.inFlight.empty() && group.inFlight.front().end == *time)
          if (!end(group))
            return false;
      for (; next && next->arrival == *time; readNext())
        (prefilling.replicas.empty() ? decoding : prefilling).choose(options.dealing).add(*next);
      for (; !sent.empty() && sent.begin()->first.first == *time; sent.erase(sent.begin()))
        decoding.choose(options.dealing).addHandedOver(std::move(sent.begin()->second));
      // A fault further down in the file: nothing of it is served.
      if (requests.hasErrors())
        return false;
      for (Group &group : groups)
        while (canBegin(group, *time) && group.hasRequests()) {
          size_t before = group.inFlight.size();
          if (!begin(group, *time))
            return false;
          if (group.inFlight.size() == before) // all wait for those in flight
            break;
        }
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

  /// Iterations that begin and end together, one of each replica of a group.
  struct Batch {
    std::vector<Iteration> iterations;
    int64_t end = 0;
  };

  struct Group {
    llvm::MutableArrayRef<Scheduler> replicas;
    std::deque<Batch> inFlight;  ///< In the order in which they began.
    std::vector<int64_t> freeAt; ///< When each stage is done with what has begun.
    std::vector<Iteration> spare; ///< The memory of one that has ended.

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

  bool canBegin(const Group &group, int64_t time) const {
    return group.freeAt.front() <= time && group.inFlight.size() < options.batching.stages;
  }

  std::optional<int64_t> findNextEvent() const {
    std::optional<int64_t> time;
    auto consider = [&](int64_t event) { time = std::min(time.value_or(event), event); };
    if (next)
      consider(next->arrival);
    if (!sent.empty())
      consider(sent.begin()->first.first);
    for (const Group &group : groups) {
      if (group.inFlight.empty())
        continue;
      consider(group.inFlight.front().end);
      if (int64_t free = group.freeAt.front(); free > now && group.inFlight.size() < options.batching.stages)
        consider(free);
    }
    return time;
  }

  /// Begins an iteration if there is something to compute. False after a report.
  bool begin(Group &group, int64_t time) {
    Batch batch;
    batch.iterations = std::move(group.spare);
    batch.iterations.resize(group.replicas.size());
    for (auto [replica, iteration] : llvm::zip(group.replicas, batch.iterations)) {
      if (const Request *stuck = replica.begin(time, iteration)) {
        requests.report(*stuck, diag::CacheFull) << numSteps;
        return false;
      }
      iteration.number = numSteps;
    }
    if (llvm::all_of(batch.iterations, [](const Iteration &iteration) { return iteration.sequences.empty(); })) {
      group.spare = std::move(batch.iterations);
      return true;
    }
    if (time > latestBegin) {
      diags.report(SMLoc(), diag::ServingTooLong) << numSteps << formatSeconds(time) << formatSeconds(latestBegin);
      return false;
    }
    int64_t before = std::max(time, group.freeAt.back()); // when the last one in flight ends
    batch.end = time;
    for (unsigned stage = 0; stage < options.batching.stages; ++stage) {
      double seconds = duration(batch.iterations, stage);
      std::optional<int64_t> nanoseconds = toNanoseconds(seconds);
      int64_t start = std::max(batch.end, group.freeAt[stage]);
      if (nanoseconds)
        seconds = double(start - time + *nanoseconds) / 1e9;
      if (!nanoseconds || start - time + *nanoseconds > maxIterationSeconds * 1'000'000'000) {
        std::string text;
        llvm::raw_string_ostream(text) << llvm::format("%g", seconds);
        diags.report(SMLoc(), diag::BadIterationTime) << numSteps << formatSeconds(time) << text << maxIterationSeconds;
        return false;
      }
      batch.end = group.freeAt[stage] = start + *nanoseconds;
    }
    observer.step({numSteps++, time, batch.end - time, batch.end - before, batch.iterations});
    group.inFlight.push_back(std::move(batch));
    return true;
  }

  bool end(Group &group) {
    Batch batch = std::move(group.inFlight.front());
    group.inFlight.pop_front();
    bool isGood = true;
    auto finished = [&](const FinishedRequest &request) {
      if (request.request.output == 1 || request.replica >= options.prefillReplicas)
        observer.finished(request);
      else
        isGood &= send(request, batch.end);
    };
    for (auto [replica, iteration] : llvm::zip(group.replicas, batch.iterations))
      replica.end(iteration, batch.end, finished);
    group.spare = std::move(batch.iterations);
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
  StageTime duration;
  ServingObserver &observer;
  DiagnosticEngine &diags;
  std::vector<Scheduler> replicas;
  Pool prefilling, decoding;         ///< Requests are served whole by the latter where the former is empty.
  std::vector<Group> groups;
  std::optional<Request> next; ///< To arrive.
  /// On the way, by the time at which their caches arrive, and by index.
  std::map<std::pair<int64_t, int64_t>, FinishedRequest> sent;
  int64_t now = -1; ///< The last event.
  int64_t numSteps = 0;
};
} // namespace

bool stage::simulate(RequestReader &requests, const SimulationOptions &options, StageTime duration, ServingObserver &observer,
                     DiagnosticEngine &diags) {
  return Simulation(requests, options, duration, observer, diags).run();
}
