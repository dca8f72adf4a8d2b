//===- ProgressBar.h - how far emission is, on a terminal ------*- C++ -*-===//
//
//   [###########                   ] 1503 of 4096 ranks
//
// Shown when emission has taken longer than a second and renewed ten times a second;
// wiped when it ends, so that nothing is left of it on the screen. It is for people:
// without a terminal there is none.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_PROGRESSBAR_H
#define STAGE_LIB_DRIVER_PROGRESSBAR_H

#include "stage/CodeGen/Emit.h"
#include <chrono>

namespace stage::driver {

class ProgressBar final : public EmitProgress {
public:
  explicit ProgressBar(llvm::raw_ostream &terminal) : terminal(terminal) {}
  ~ProgressBar() override { finish(); }

  void update(size_t done, size_t total) override;
  void finish() override;

private:
  using Clock = std::chrono::steady_clock;

  llvm::raw_ostream &terminal;
  Clock::time_point start = Clock::now(), lastShown;
  bool isShown = false;
};

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_PROGRESSBAR_H
