//===- Progress.h - how far a search is ------------------------*- C++ -*-===//
#ifndef STAGE_LIB_SEARCH_PROGRESS_H
#define STAGE_LIB_SEARCH_PROGRESS_H

#include "stage/Search/Search.h"
#include <chrono>
#include <mutex>

namespace stage {

/// Counts the candidates of a phase, in any thread, and reports how long those take that are left. Without somebody who
/// listens it does nothing.
class ProgressMeter {
public:
  using Listener = std::function<void(const SearchProgress &)>;
  explicit ProgressMeter(const Listener &listener) : listener(listener) {}

  void begin(SearchProgress::Phase phase, size_t total);
  /// One candidate is done.
  void advance();
  void reportEstimate();

private:
  using Clock = std::chrono::steady_clock;
  void report(bool isEstimate);

  const Listener &listener;
  std::mutex mutex;
  SearchProgress progress;
  std::atomic<size_t> done = 0;
  size_t total = 0;
  Clock::time_point start;
};

} // namespace stage

#endif // STAGE_LIB_SEARCH_PROGRESS_H
