//===- Progress.cpp - how far a search is ---------------------------------===//
#include "Progress.h"

using namespace stage;

void ProgressMeter::begin(SearchProgress::Phase phase, size_t total) {
  progress.phase = phase;
  done = 0;
  this->total = total;
  start = Clock::now();
}

void ProgressMeter::report(bool isEstimate) {
  std::lock_guard<std::mutex> lock(mutex);
  progress.done = std::min<size_t>(done, total);
  progress.left = total - progress.done;
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  progress.seconds = seconds / double(std::max<size_t>(progress.done, 1)) * double(progress.left);
  progress.isEstimate = isEstimate;
  listener(progress);
}

void ProgressMeter::advance() {
  if (!listener)
    return;
  // A candidate is decided in a microsecond, which the clock would double.
  constexpr size_t rarely = 1024;
  size_t number = ++done;
  if (progress.phase != SearchProgress::Phase::Decide || number % rarely == 0)
    report(/*isEstimate=*/false);
}

void ProgressMeter::reportEstimate() {
  if (listener)
    report(/*isEstimate=*/true);
}
