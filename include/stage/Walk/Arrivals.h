//===- Arrivals.h - when what a unit needs begins to arrive ----*- C++ -*-===//
//
// Problem: a unit needs inputs that are loaded and messages that are received. Both begin to
// arrive while an earlier unit of the rank runs: memory holds them from then on, nodes that
// receive wait for what ran before, and a sender that waits for its receiver can go on.
//
//   units          F0   F1   S    B0        S only sends
//   inputs come          F0   F1   F1       during the unit that is named
//
// Rule (law L13): inputs of a unit are loaded, and its receives are posted, from the beginning of the last unit before
// it that has work, a node that computes or is a collective of groups. A schedule whose sends would wait in a circle
// posts receives earlier (postRecvs in stage/Schedule/Schedule.h); the program has these posts. What runs once per step
// loads nothing for units of its step; the first unit of a next step is loaded by the last one of the step before.
//
// Gathers ahead of the ops that use them are of one unit: as many begin with it as may be there at a time, and
// each release lets the next one begin (UnitWalk.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_ARRIVALS_H
#define STAGE_WALK_ARRIVALS_H

#include "stage/IR/graph/Program.h"

namespace stage {

class Arrivals {
public:
  /// Of the units of a stage, which are those of one step or of several. The stage must outlive this.
  Arrivals(const Graph &graph, const StageProgram &stage, unsigned steps = 1);

  /// The unit that loads the inputs of a unit, from its beginning on. Nothing: they are there when the rank begins, or
  /// the unit runs once per step.
  std::optional<unsigned> getLoader(unsigned position) const { return loaders[position]; }
  /// The unit from whose beginning on the receives of a unit are posted.
  unsigned getPost(unsigned position) const;
  std::vector<unsigned> listPosts() const;

private:
  std::vector<std::optional<unsigned>> loaders; ///< By position.
  std::vector<unsigned> pairBegins;             ///< Likewise: getPairBegin.
  llvm::ArrayRef<unsigned> posts;               ///< Of the program.
};

/// Whether a unit with these items has a node beside which inputs are loaded and receives wait.
bool hasWork(const Graph &graph, llvm::ArrayRef<ProgramItem> items);

/// How many gathers ahead may begin with a unit of these items: one more than the graph's `prefetch`, less those that
/// an earlier phase has begun and this unit releases.
uint64_t countRoomAhead(const Graph &graph, llvm::ArrayRef<ProgramItem> items);

} // namespace stage

#endif // STAGE_WALK_ARRIVALS_H
