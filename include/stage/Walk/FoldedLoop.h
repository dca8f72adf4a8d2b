//===- FoldedLoop.h - one iteration for many equal ones --------*- C++ -*-===//
//
// Problem: memory is found by running every iteration of every repeat, which for 80
// layers is most of what a plan costs, though all but a few of them do the same.
//
//   iterations   0 1 2 3 4 5 6 7 8 9       of one case, one carried value
//   run          0 1 2 . . . . . 8 9       2 stands for 2 to 7: six copies of what it keeps
//
// Algorithm: within a run of iterations of one case, an iteration is like the one before
// it once all that is carried comes from the run: after as many iterations as there are
// carried values, and of gathers that run ahead. What a unit holds then grows (forward) and shrinks (backward) by the
// same bytes with each iteration, so that it is largest at an end of the run, where every
// iteration is run. Of those between, the first is run, and what it keeps for backward
// counts once for each. Values that a body only passes on from one name to the next come
// round again after at most that many iterations, so a multiple of all such periods is
// left out. Cases that take turns, five of one and one of another and so on, are folded
// like one iteration of a repeat whose body is a whole round of them.
//
// Limits: repeats with more than four carried values are run in full, and so are rounds of
// more than 16 runs, and microbatches of more than two units: one in the middle may free what
// was kept and keep something else. Sizes do not depend on the iteration.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_FOLDEDLOOP_H
#define STAGE_WALK_FOLDEDLOOP_H

#include "stage/IR/graph/Graph.h"

namespace stage {

class FoldedLoop {
public:
  /// Every iteration is run.
  FoldedLoop() = default;
  /// The iterations [begin, end) of a repeat, whose forward and backward bodies carry at most `numCarried` values.
  /// So many gathers run ahead.
  FoldedLoop(const IterationCases &cases, int64_t begin, int64_t end, unsigned numCarried, unsigned prefetch = 0);
  /// A loop for callers that need only the waits of an iteration, because these lead back by at most `numCarried`
  /// iterations. A gap begins behind so many iterations of a run, and ends one round before the run does. For example,
  /// of ten equal layers with `numCarried` 1 the gap is [1, 9).
  static FoldedLoop makeOfReads(const IterationCases &cases, int64_t begin, int64_t end, unsigned numCarried,
                                bool isReverse);

  /// The iteration that is run after `iteration`, forwards (`step` 1) or backwards (-1).
  int64_t getNext(int64_t iteration, int64_t step) const;
  /// How many iterations it stands for, itself among them.
  int64_t getCopies(int64_t iteration) const;

  /// Iterations that are left out: whole rounds of so many. The round before them stands for them. What goes round
  /// between carried values is at the same one again after `period` rounds, of which there are whole numbers.
  struct Gap {
    int64_t begin, end, round, period;
  };
  /// The first gap that ends after `iteration`; null if there is none.
  const Gap *findGap(int64_t iteration) const;

private:
  void foldRuns(const IterationCases &cases, int64_t begin, int64_t end);
  size_t foldRounds(llvm::ArrayRef<IterationCases::Run> runs, size_t first);
  bool fold(int64_t begin, int64_t end, int64_t round);

  unsigned numCarried = 0;
  int64_t roundsBelow = 0, roundsAbove = 0; ///< That are run below and above a gap.
  std::vector<Gap> gaps;                    ///< In order.
};

} // namespace stage

#endif // STAGE_WALK_FOLDEDLOOP_H
