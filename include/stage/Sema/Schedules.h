//===- Schedules.h - running a schedule program ----------------*- C++ -*-===//
//
// A schedule declaration is a small program that says what stage r of p does with m
// microbatches. It is run once per stage:
//
//   schedule gpipe(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(i); } }
//   p = 1, m = 2:  F0 F1 B0 B1
//
// Whether the units make a valid schedule is checked by lib/Schedule.
//
// Limits: a schedule takes at most 50 million steps over all stages; `fn` may not
// recur.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_SCHEDULES_H
#define STAGE_SEMA_SCHEDULES_H

#include "stage/Schedule/BalancedSplit.h"
#include "stage/Schedule/Unit.h"
#include "stage/Sema/Evaluator.h"

namespace stage::sema {

struct BoundSchedule {
  const ast::ScheduleDecl *decl = nullptr;
  /// Virtual stages per stage.
  int64_t chunks = 1;
  SMRange chunksOrigin; ///< Where their number is written.
  /// Of the model: each virtual stage is placed as often.
  int64_t copies = 1;
  /// The virtual stage of chunk c of stage r, at [r][c]: for each copy a permutation of 0 .. p * chunks / copies - 1.
  /// The chunks of a copy stand together.
  std::vector<std::vector<int64_t>> virtualStages;
  /// Per stage its units, in order.
  std::vector<std::vector<Unit>> units;

  /// The same as stage/Schedule/Schedule.h numbers virtual stages: that of chunk c of stage r at [c*p + r], copy by
  /// copy.
  std::vector<unsigned> getPlacement() const;
};

/// Adds to `obligations` what others owe and note.
void repeat(const Obligations &noted, Obligations &obligations);

/// Runs `schedule` for `stages` and `microbatches`. `args` are its further parameters; `usedAt` is where it was chosen.
std::optional<BoundSchedule> runSchedule(Evaluator &evaluator, const ast::ScheduleDecl &schedule, int64_t stages,
                                         int64_t microbatches, ArrayRef<NamedValue> args, SMRange usedAt);

} // namespace stage::sema

#endif // STAGE_SEMA_SCHEDULES_H
