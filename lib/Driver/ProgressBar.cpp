//===- ProgressBar.cpp - how far emission is, on a terminal ---------------===//
#include "ProgressBar.h"

using namespace stage;
using namespace stage::driver;

/// Back to the first column, and wipes what stood there: ECMA-48, which all terminals of today know.
static const char wipe[] = "\r\033[K";

void ProgressBar::update(size_t done, size_t total) {
  using namespace std::chrono_literals;
  Clock::time_point now = Clock::now();
  if (now - start < 1s || (isShown && now - lastShown < 100ms))
    return;
  lastShown = now;
  isShown = true;
  constexpr size_t width = 30;
  size_t filled = total ? width * done / total : 0;
  terminal << wipe << '[' << std::string(filled, '#') << std::string(width - filled, ' ') << "] " << done << " of "
           << total << " ranks";
  terminal.flush();
}

void ProgressBar::finish() {
  if (!isShown)
    return;
  terminal << wipe;
  terminal.flush();
  isShown = false;
}
