//===- CompiledUnit.cpp - the tasks of a unit as numbers ------------------===//
#include "CompiledUnit.h"

using namespace stage;

std::pair<Ticks, int32_t> CompiledUnit::getReady(const UnitRun &run, uint32_t task) const {
  Ticks ready = -1;
  int32_t cause = UnitRun::none;
  for (uint32_t i = getFirstAwaited(task), end = ends[task]; i < end; ++i) {
    Ticks time = run.times[awaited[i]];
    if (time < 0)
      return {-1, UnitRun::none};
    if (time > ready) {
      ready = time;
      cause = int32_t(awaited[i]);
    }
  }
  return {ready, cause};
}

std::vector<Ticks> CompiledUnit::addSurcharges(llvm::ArrayRef<Surcharge> surcharges) const {
  std::vector<Ticks> taken = durations;
  for (auto [ticks, surcharge] : llvm::zip(taken, surcharges))
    for (Ticks more : {surcharge.launch, surcharge.beside})
      ticks += std::min(more, maxTicks - ticks);
  return taken;
}

UnitCharges &CompiledUnit::findCharges(std::vector<Surcharge> surcharges) {
  if (llvm::all_of(surcharges, [](const Surcharge &each) { return each == Surcharge(); }))
    surcharges.clear();
  for (std::unique_ptr<UnitCharges> &known : *charges)
    if (known->surcharges == surcharges)
      return *known;
  UnitCharges &taken = *charges->emplace_back(std::make_unique<UnitCharges>());
  taken.durations = durations;
  if (!surcharges.empty()) {
    taken.charged = addSurcharges(surcharges);
    taken.durations = taken.charged;
  }
  taken.surcharges = std::move(surcharges);
  return taken;
}

std::unique_ptr<UnitRun> CompiledUnit::startRun(const UnitCharges &taken) const {
  auto run = std::make_unique<UnitRun>();
  run->charges = &taken;
  run->times.resize(getFirstTask() + getNumTasks(), -1);
  run->causes.resize(getNumTasks(), UnitRun::none);
  run->shared.resize(shared.size());
  return run;
}

bool CompiledUnit::runPlain(UnitRun &run, uint32_t begin, uint32_t end) const {
  uint32_t firstTask = getFirstTask();
  Ticks *times = run.times.data();
  const Ticks *durations = run.charges->durations.data();
  uint32_t next = getFirstAwaited(begin);
  Ticks latest = 0;
  for (uint32_t task = begin; task < end; ++task) {
    Ticks ready = -1;
    int32_t cause = UnitRun::none;
    for (uint32_t last = ends[task]; next < last; ++next)
      if (Ticks time = times[awaited[next]]; time > ready) {
        ready = time;
        cause = int32_t(awaited[next]);
      }
    if (durations[task] >= maxTicks - ready)
      return false;
    times[firstTask + task] = ready + durations[task];
    run.causes[task] = cause;
    latest = std::max(latest, ready + durations[task]);
  }
  run.last = std::max(run.last, latest);
  return true;
}

void CompiledUnit::runLocalReceive(UnitRun &run, uint32_t task, uint32_t send) const {
  auto [posted, cause] = getReady(run, task);
  Ticks sent = getEnd(run, send);
  run.times[getFirstTask() + task] = std::max(sent, posted);
  run.causes[task] = posted > sent ? cause : int32_t(getFirstTask() + send);
  run.last = std::max(run.last, getEnd(run, task));
}

void CompiledUnit::runReceive(UnitRun &run, uint32_t task, uint32_t number) const {
  auto [posted, cause] = getReady(run, task);
  uint32_t message = uint32_t(references.size()) + number;
  run.times[getFirstTask() + task] = std::max(run.times[message], posted);
  run.causes[task] = posted > run.times[message] ? cause : int32_t(message);
  run.last = std::max(run.last, getEnd(run, task));
}

Ticks CompiledUnit::getBegin(const UnitRun &run, uint32_t task) const {
  for (size_t number = 0; number < shared.size(); ++number)
    if (shared[number].task == task)
      return run.shared[number].first;
  if (!isReceive(task))
    return getEnd(run, task) - run.charges->durations[task];
  auto [posted, cause] = getReady(run, task);
  auto local = localSends.find(task);
  return local == localSends.end() ? posted : std::max(posted, getBegin(run, local->second));
}

void CompiledUnit::findLimits(UnitRun &run) const {
  uint32_t firstTask = getFirstTask();
  run.limits.assign(firstTask, maxTicks);
  run.decides.assign(firstTask, 0);
  for (uint32_t task : waitsOutside) {
    auto [ready, cause] = getReady(run, task);
    if (isReceive(task) && run.causes[task] != cause) {
      // What is sent decides, as long as the receive is posted by then.
      if (run.causes[task] < int32_t(firstTask))
        run.decides[size_t(run.causes[task])] = 1;
      for (uint32_t place : getAwaited(task))
        if (place < firstTask)
          run.limits[place] = std::min(run.limits[place], getEnd(run, task));
      continue;
    }
    // Of what ends at the same time the first one that is named decides.
    bool isBehind = false;
    for (uint32_t place : getAwaited(task))
      if (int32_t(place) == cause) {
        isBehind = true;
        if (place < firstTask)
          run.decides[place] = 1;
      } else if (place < firstTask) {
        run.limits[place] = std::min(run.limits[place], isBehind ? ready : ready - 1);
      }
  }
  for (size_t number = 0; number < received.size(); ++number)
    if (size_t place = references.size() + number; run.causes[received[number].task] != int32_t(place))
      run.limits[place] = getEnd(run, received[number].task) - 1;
  run.first = uint32_t(llvm::find(run.decides, 1) - run.decides.begin());
}

/// By how much later than a run a unit is whose references have these times; nothing if it does not have this run.
static std::optional<Ticks> findDelay(const UnitRun &run, llvm::ArrayRef<Ticks> times) {
  if (run.first == run.decides.size())
    return std::nullopt;
  Ticks later = times[run.first] - run.times[run.first];
  for (size_t place = 0; place < times.size(); ++place)
    if (run.decides[place] ? times[place] - later != run.times[place] : times[place] - later > run.limits[place])
      return std::nullopt;
  return later;
}

std::pair<const UnitRun *, Ticks> KnownRuns::find(llvm::ArrayRef<Ticks> times, const UnitCharges &charges) {
  constexpr size_t maxTried = 16;
  for (size_t i = 0; i < std::min(maxTried, own.size()); ++i)
    if (std::optional<Ticks> later = findDelay(*own[i], times)) {
      std::rotate(own.begin(), own.begin() + ptrdiff_t(i), own.begin() + ptrdiff_t(i) + 1);
      return {own.front(), *later};
    }
  for (size_t i = 0; i < std::min(maxTried, charges.runs.size()); ++i) {
    const UnitRun &run = *charges.runs[charges.runs.size() - 1 - i];
    if (std::optional<Ticks> later = findDelay(run, times)) {
      add(run);
      return {&run, *later};
    }
  }
  return {nullptr, 0};
}
