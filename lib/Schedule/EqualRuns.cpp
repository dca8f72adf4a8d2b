//===- EqualRuns.cpp - the part of a schedule that repeats ----------------===//
#include "stage/Schedule/EqualRuns.h"

using namespace stage;

namespace {
class RunFinder {
public:
  RunFinder(const Schedule &schedule, const ScheduleTimes &times, llvm::ArrayRef<std::vector<int64_t>> durations)
      : schedule(schedule), times(times), durations(durations) {}

  std::optional<EqualRun> find() const;

private:
  bool areAlike(unsigned stage, size_t position, size_t other) const {
    const Unit &a = schedule.units[stage][position], &b = schedule.units[stage][other];
    return a.kind == b.kind && a.chunk == b.chunk && a.overlapsNext == b.overlapsNext &&
           durations[stage][position] == durations[stage][other];
  }
  size_t findAt(unsigned stage, int64_t time) const {
    const std::vector<int64_t> &start = times.start[stage];
    return size_t(llvm::lower_bound(start, time) - start.begin());
  }
  /// Cuts [begin, end) down to the time in which the stage repeats itself after `period`. False if that is nothing.
  bool cut(unsigned stage, int64_t period, int64_t middle, int64_t &begin, int64_t &end) const;

  const Schedule &schedule;
  const ScheduleTimes &times;
  llvm::ArrayRef<std::vector<int64_t>> durations;
};
} // namespace

bool RunFinder::cut(unsigned stage, int64_t period, int64_t middle, int64_t &begin, int64_t &end) const {
  const std::vector<int64_t> &start = times.start[stage];
  size_t first = findAt(stage, middle), other = findAt(stage, middle + period);
  auto isEqual = [&](size_t position, size_t later) {
    return later < start.size() && start[later] - start[position] == period && areAlike(stage, position, later);
  };
  if (first >= other || !isEqual(first, other))
    return false;
  size_t shift = other - first, last = first;
  while (first > 0 && isEqual(first - 1, first - 1 + shift))
    --first;
  while (isEqual(last + 1, last + 1 + shift))
    ++last;
  begin = std::max(begin, start[first]);
  end = std::min(end, start[last + shift] + durations[stage][last + shift]);
  return begin < end;
}

std::optional<EqualRun> RunFinder::find() const {
  constexpr size_t maxCandidates = 512;
  constexpr int64_t minCount = 3;
  const std::vector<int64_t> &start = times.start.front();
  size_t middle = start.size() / 2;
  std::optional<EqualRun> best;
  for (size_t later = middle + 1; later < std::min(start.size(), middle + maxCandidates); ++later) {
    int64_t period = start[later] - start[middle];
    if (period <= 0 || !areAlike(0, middle, later))
      continue;
    int64_t begin = 0, end = times.makespan;
    bool isRun = true;
    for (unsigned stage = 0; stage < schedule.stages && isRun; ++stage)
      isRun = cut(stage, period, start[middle], begin, end);
    int64_t count = isRun ? (end - begin) / period : 0;
    if (count >= minCount && (!best || count * period > best->count * best->period + best->period))
      best = EqualRun{begin, period, count};
  }
  return best;
}

std::optional<EqualRun> stage::findEqualRun(const Schedule &schedule, const ScheduleTimes &times,
                                            llvm::ArrayRef<std::vector<int64_t>> durations) {
  return schedule.units.empty() || schedule.units.front().empty() ? std::nullopt
                                                                  : RunFinder(schedule, times, durations).find();
}
