//===- RankActivity.h - what a rank does during a step ---------*- C++ -*-===//
//
// Problem: a rank computes, communicates and copies at the same time. How long is it idle, and how long does it do
// nothing but wait for communication?
//
//   compute        [0, 4)   [6, 9)              compute 7
//   communication     [3, 6)      [9, 11)       communication 5, of which exposed 4: [4, 6) and [9, 11)
//   step 12                                     idle 1: [11, 12)
//
// Algorithm: the ends of all intervals in the order of time, n log n for n of them. Compute, exposed communication,
// copies alone and idle time together are the step.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_RANKACTIVITY_H
#define STAGE_TIME_RANKACTIVITY_H

#include "stage/Machine/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <compare>
#include <vector>

namespace stage {

enum class ActivityKind : uint8_t {
  Compute,
  Communication,
  Copy, ///< To or from the host, and what the host computes.
};

/// What is going on from `begin` to before `end`.
struct Activity {
  ActivityKind kind;
  Ticks begin, end;
};

/// Sums over a step, in ticks.
struct RankActivity {
  Ticks compute = 0;
  Ticks communication = 0;
  Ticks exposed = 0; ///< Of communication: nothing is computed meanwhile.
  Ticks copies = 0;
  Ticks copiesAlone = 0; ///< Of copies: nothing is computed or communicated meanwhile.
  Ticks idle = 0;
  auto operator<=>(const RankActivity &) const = default;
};

/// Sums up what a rank does in a step that lasts from 0 to `step`.
RankActivity summarize(llvm::ArrayRef<Activity> activities, Ticks step);

/// A step on all ranks.
struct StepActivity {
  Ticks step = 0;
  size_t numRanks = 0;
  /// Ranks, ascending, and what each of them does. A rank stands in one entry; ranks may be left out.
  std::vector<std::pair<std::vector<uint32_t>, RankActivity>> ranks;
};

/// Prints the name of the machine, if it has one, the step, and one line for all ranks that do the same, the lowest
/// rank first. Times of a machine without rates are counted in Machine::ticksPerUnit. `heading`: `machine: h100,
/// runtime: ideal`, in place of the line of the machine's name.
void print(llvm::raw_ostream &os, StepActivity activity, const Machine &machine, llvm::StringRef heading = "");

} // namespace stage

#endif // STAGE_TIME_RANKACTIVITY_H
