//===- BalancedSplit.h - iterations for stages that have as much to do -===//
//
// Problem: a pipeline is as slow as its slowest stage. Iterations differ, the first and the
// last virtual stage have more to do than their iterations, and where memory is counted an
// iteration takes more on a stage that has more microbatches in flight. Which iterations does
// each virtual stage run, so that the largest load is as small as can be?
//
//   loads    1 1 1 1 1 1 1 1, and 3 behind them        over 4 virtual stages
//   split    3 3 2 0                                   3, 3, 2 and 3
//
// Algorithm: a bisection of the largest load. Whether one is enough: the places that can be
// reached by the first v virtual stages are few intervals, and from each place the next
// virtual stage reaches the places up to the last one that its load allows. Then, from the
// last virtual stage to the first, each takes as much as an even share of what is left, or
// else the least above it. Equal iterations in a row are one run, so nothing counts them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_BALANCEDSPLIT_H
#define STAGE_SCHEDULE_BALANCEDSPLIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace stage {

/// What `split = balanced(...)` makes as equal as can be.
enum class Balance : uint8_t { None, Flops, Memory };
/// `flops`, `memory`.
llvm::StringRef getName(Balance balance);

/// What a virtual stage bears for something that it runs, in any unit.
struct StageLoad {
  __int128 once = 0;
  __int128 perMicrobatch = 0; ///< As often as it has microbatches in flight.

  bool operator==(const StageLoad &other) const { return once == other.once && perMicrobatch == other.perMicrobatch; }
};

/// Iterations in a row, and what stands before and behind them: on the first and on the last virtual stage.
struct ChainLoad {
  struct Run {
    int64_t count; ///< Above 0.
    StageLoad load;
  };
  StageLoad before, behind;
  std::vector<Run> runs;
};

/// Iterations per virtual stage, in order, of which each has `inFlight` microbatches in flight. Each runs one at least,
/// but for a first or last one that bears what stands there. Nothing if there are too few iterations for that, or if
/// loads add up to more than 2^126.
std::optional<std::vector<int64_t>> splitBalanced(const ChainLoad &chain, llvm::ArrayRef<int64_t> inFlight);

} // namespace stage

#endif // STAGE_SCHEDULE_BALANCEDSPLIT_H
