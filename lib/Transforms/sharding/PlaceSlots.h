//===- PlaceSlots.h - where what is routed stands (law L2) -----*- C++ -*-===//
//
// Problem: ranks route each what they have, so that the slots of an op that routes have the axes of its tokens:
//
//   op dispatch(t: [b, s, d], to: [b, s, j]) -> (result: [x, c, d] = t[b, s, d]) { routes b, s, j -> x, c by to; }
//   %t : {B@dp, S@tp, D}                 %r = dispatch(%t, %to) : {X, C@(dp, tp), D}
//
// In which order is free, and decides what the next reshard costs: with experts over ep, the inner part (dp.1, tp) of
// the ranks, one all_to_all takes these axes from the end of c to x; were they not at its end, it would be two. But the
// order says which slots a rank has, so that all that route by the same integers must have the same one, and the same
// tokens.
//
// Algorithm: the first op that routes by some integers places its slots: what is wanted on the target comes last, in
// the order in which it is wanted there. What is wanted is what the strategy says of the result or of a parameter with
// which an op that uses the result is made; of what comes back from the target, what that has. Of what no token is
// split over the target is made in parts at once. Ops behind it that route by the same integers, and gradients, have
// their tokens and slots where that one has them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_PLACESLOTS_H
#define STAGE_LIB_TRANSFORMS_PLACESLOTS_H

#include "WantedShardings.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

class SlotPlacer {
public:
  SlotPlacer(Graph &graph, const WantedShardings &wanted, DiagnosticEngine &diags)
      : graph(graph), wanted(wanted), diags(diags) {}

  /// Calls `f` for the indices of tokens whose axes an op before has decided.
  void forEachToken(const Op &op, llvm::function_ref<void(unsigned index, const AxisList &axes)> f);
  /// Gives the slots of an op that routes, whose other indices have their axes, those of its tokens.
  void place(Op &op);

private:
  const Op *findFirst(const Op &op) const;
  void noteSources(const Op &op);
  AxisList findWanted(const Op &op) const;
  std::optional<AxisList> findWantedByUser(const Op &user, unsigned operand, unsigned dim) const;

  Graph &graph;
  const WantedShardings &wanted;
  DiagnosticEngine &diags;
  /// By the integers that say where tokens go.
  llvm::DenseMap<const Value *, const Op *> firstByIntegers;
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_PLACESLOTS_H
