//===- Simulation.cpp - a server, or several, in time ---------------------===//
//
// Replicas that iterate together are a group: all of a pool with lock-step, else each for
// itself. Time goes from event to event, the next arrival of a request or of a cache or the
// end of an iteration, and at one time ends come first, then arrivals, then beginnings.
//
// Stages work on the iterations of a group in the order in which these began, so that they end in it, too: one that
// begins knows when it will be through all stages.
//
// An event costs the logarithm of the number of groups, however many there are: `events` holds the next event of each
// group that has one, and only groups of which something has changed can begin: an iteration has ended, a request has
// come, or the first stage is free. Those are `touched`; they begin in their order, as all groups did if all were
// asked. Which replica has the fewest requests is kept in the same way.
//
//===----------------------------------------------------------------------===//
#include "stage/Serving/Simulation.h"
#include "Timestamp.h"
#include "stage/Serving/Diagnostics.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>
#include <set>

using namespace stage;
using namespace stage::serving;

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
/// Replicas that do the same, of which requests choose one.
class Pool {
public:
  /// Replicas are numbered from `first` in all pools together.
  Pool(llvm::MutableArrayRef<Scheduler> replicas, unsigned first, Dealing dealing) : replicas(replicas), first(first) {
    if (dealing == Dealing::LeastLoaded)
      for (size_t i = 0; i < replicas.size(); ++i)
        loads.emplace_hint(loads.end(), 0, i);
    known.resize(loads.size());
  }

  llvm::MutableArrayRef<Scheduler> replicas;
  unsigned first;

  /// The number of one, in turn, or of the first of those with the fewest requests.
  unsigned choose() { return first + unsigned(loads.empty() ? numDealt++ % replicas.size() : loads.begin()->second); }

  /// The requests of a replica, by its number, may have become more or fewer.
  void update(unsigned replica) {
    if (loads.empty())
      return;
    size_t i = replica - first, now = replicas[i].getNumRequests();
    if (now == known[i])
      return;
    loads.erase({known[i], i});
    loads.emplace(known[i] = now, i);
  }

private:
  size_t numDealt = 0;
  std::set<std::pair<size_t, size_t>> loads; ///< Requests, replica; empty if replicas take turns.
  std::vector<size_t> known;                 ///< Requests of each replica in `loads`.
};

class Simulation {
public:
  Simulation(RequestReader &requests, const SimulationOptions &options, IterationTime duration,
             ServingObserver &observer, DiagnosticEngine &diags)
      : requests(requests), options(options), duration(duration), observer(observer), diags(diags) {
    replicas.reserve(options.prefillReplicas + options.replicas);
    for (unsigned i = 0; i < options.prefillReplicas + options.replicas; ++i)
      replicas.emplace_back(options.batching, i, /*handsOver=*/i < options.prefillReplicas);
    llvm::MutableArrayRef<Scheduler> all(replicas);
    pools.reserve(2); // groups point to them
    pools.emplace_back(all.take_front(options.prefillReplicas), 0, options.dealing);
    pools.emplace_back(all.drop_front(options.prefillReplicas), options.prefillReplicas, options.dealing);
    for (Pool &pool : pools)
      for (size_t i = 0, size = options.lockStep ? pool.replicas.size() : 1; i < pool.replicas.size(); i += size) {
        Group group;
        group.pool = &pool;
        group.first = pool.first + unsigned(i);
        group.replicas = pool.replicas.slice(i, size);
        group.freeAt.resize(options.batching.stages);
        groupOf.insert(groupOf.end(), size, unsigned(groups.size()));
        groups.push_back(std::move(group));
      }
  }

  bool run() {
    readNext();
    while (std::optional<int64_t> time = findNextEvent()) {
      now = *time;
      touched.clear();
      if (!endIterations())
        return false;
      dealRequests();
      // A fault further down in the file: nothing of it is served.
      if (requests.hasErrors())
        return false;
      for (unsigned number : touched) {
        Group &group = groups[number];
        while (canBegin(group, now) && group.hasRequests()) {
          size_t before = group.inFlight.size();
          if (!begin(group, now))
            return false;
          if (group.inFlight.size() == before) // all wait for those in flight
            break;
        }
        expect(number);
      }
    }
    return !requests.hasErrors();
  }

private:
  /// Iterations that begin and end together, one of each replica of a group.
  struct Batch {
    std::vector<Iteration> iterations;
    int64_t end = 0;
  };

  struct Group {
    Pool *pool = nullptr;
    unsigned first = 0; ///< The number of its first replica.
    llvm::MutableArrayRef<Scheduler> replicas;
    std::deque<Batch> inFlight;   ///< In the order in which they began.
    std::vector<int64_t> freeAt;  ///< When each stage is done with what has begun.
    std::vector<Iteration> spare; ///< The memory of one that has ended.
    std::optional<int64_t> event; ///< The next one, as `events` has it.

    bool hasRequests() const {
      return llvm::any_of(replicas, [](const Scheduler &replica) { return replica.getNumRequests() != 0; });
    }
  };

  void readNext() {
    next = requests.next([&](const Request &request) {
      int64_t needed = Scheduler::countBlocks(request, options.batching);
      if (options.batching.cacheBlocks == 0 || needed <= options.batching.cacheBlocks)
        return true;
      requests.report(request, diag::RequestNeverFits)
          << needed << options.batching.block << options.batching.cacheBlocks;
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
    if (!events.empty())
      consider(events.begin()->first);
    return time;
  }

  /// Enters the next event of a group: its first iteration in flight ends, or its first stage is free for another one.
  void expect(unsigned number) {
    Group &group = groups[number];
    if (group.event)
      events.erase({*group.event, number});
    group.event.reset();
    if (group.inFlight.empty())
      return;
    group.event = group.inFlight.front().end;
    if (int64_t free = group.freeAt.front(); free > now && group.inFlight.size() < options.batching.stages)
      group.event = std::min(*group.event, free);
    events.emplace(*group.event, number);
  }

  /// Goes through the events of groups that are now. False after a report.
  bool endIterations() {
    for (; !events.empty() && events.begin()->first == now; events.erase(events.begin())) {
      unsigned number = events.begin()->second;
      Group &group = groups[number];
      group.event.reset();
      touched.insert(number);
      while (!group.inFlight.empty() && group.inFlight.front().end == now)
        if (!end(group))
          return false;
    }
    return true;
  }

  /// Gives out the requests, and the caches, that come now.
  void dealRequests() {
    for (; next && next->arrival == now; readNext())
      give(pools[pools.front().replicas.empty()], [&](Scheduler &replica) { replica.add(*next); });
    for (; !sent.empty() && sent.begin()->first.first == now; sent.erase(sent.begin()))
      give(pools.back(), [&](Scheduler &replica) { replica.addHandedOver(std::move(sent.begin()->second)); });
  }

  void give(Pool &pool, llvm::function_ref<void(Scheduler &)> add) {
    unsigned replica = pool.choose();
    add(replicas[replica]);
    pool.update(replica);
    touched.insert(groupOf[replica]);
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
    int64_t before = group.inFlight.empty() ? time : group.inFlight.back().end;
    std::optional<double> seconds = duration(batch.iterations, time, group.freeAt);
    if (!seconds)
      return false;
    std::optional<int64_t> nanoseconds = toNanoseconds(*seconds);
    if (!nanoseconds) {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::format("%g", *seconds);
      diags.report(SMLoc(), diag::BadIterationTime) << numSteps << formatSeconds(time) << text << maxIterationSeconds;
      return false;
    }
    batch.end = time + *nanoseconds;
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
    for (size_t i = 0; i < batch.iterations.size(); ++i) {
      group.replicas[i].end(batch.iterations[i], batch.end, finished);
      group.pool->update(group.first + unsigned(i));
    }
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
  IterationTime duration;
  ServingObserver &observer;
  DiagnosticEngine &diags;
  std::vector<Scheduler> replicas;
  std::vector<Pool>
      pools; ///< Of those that prefill, and of those that decode, or serve requests whole if the former is empty.
  std::vector<Group> groups;
  std::vector<unsigned> groupOf;                 ///< By the numbers of replicas.
  std::set<std::pair<int64_t, unsigned>> events; ///< Of groups: their next, and their numbers.
  std::optional<Request> next;                   ///< To arrive.
  /// On the way, by the time at which their caches arrive, and by index.
  std::map<std::pair<int64_t, int64_t>, FinishedRequest> sent;
  int64_t now = -1;           ///< The last event.
  std::set<unsigned> touched; ///< Groups of which something has changed now.
  int64_t numSteps = 0;
};
} // namespace

double stage::serving::passStages(llvm::function_ref<double(unsigned stage)> seconds, int64_t begin,
                                  llvm::MutableArrayRef<int64_t> freeAt) {
  int64_t end = begin;
  for (auto [stage, free] : llvm::zip(llvm::seq<unsigned>(0, freeAt.size()), freeAt)) {
    double own = seconds(stage);
    std::optional<int64_t> nanoseconds = toNanoseconds(own);
    if (!nanoseconds)
      return own;
    end = free = std::max(end, free) + *nanoseconds;
  }
  return double(end - begin) / 1e9;
}

bool stage::serving::simulate(RequestReader &requests, const SimulationOptions &options, IterationTime duration,
                              ServingObserver &observer, DiagnosticEngine &diags) {
  return Simulation(requests, options, duration, observer, diags).run();
}
