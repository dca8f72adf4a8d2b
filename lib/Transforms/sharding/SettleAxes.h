//===- SettleAxes.h - which index gets an axis (law L5) --------*- C++ -*-===//
#ifndef STAGE_LIB_TRANSFORMS_SETTLEAXES_H
#define STAGE_LIB_TRANSFORMS_SETTLEAXES_H

#include "WantedShardings.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

class AxisSettler {
public:
  AxisSettler(Graph &graph, const WantedShardings &wanted, DiagnosticEngine &diags)
      : graph(graph), wanted(wanted), diags(diags) {}

  /// Gives the indices of a compute op that are not fixed the axes that its operands, or for gradients of parameters
  /// its results, carry. `taken` are used up. Returns the axes over which ranks make copies
  /// (WantedShardings::noteCopies).
  AxisSet settle(Op &op, llvm::ArrayRef<bool> fixed, AxisSet taken);
  /// Remembers over which axes an op, whose indices have their axes, needs its operands gathered. Later ops of its
  /// block, and of repeats in it, get that for nothing, as a reshard is shared within one unit (L6).
  void noteGathers(const Op &op);

  /// Of the axes of a dim those that the index can have that carries them.
  AxisList getAxesOfCarrier(const Op &op, unsigned index, const AxisList &axes) const;
  /// The dim on which a result is demanded to carry an axis.
  std::optional<unsigned> findWantedPlace(const Value &value, AxisId axis) const;

private:
  /// Who wants an axis on an index.
  struct Claim {
    unsigned index;
    unsigned operand; ///< ~0u: the result
    bool stationary;  ///< a parameter or the gradient of one
  };
  using Claims = llvm::SmallVector<llvm::SmallVector<Claim, 4>, 8>; ///< By axis.

  void collectClaims(Op &op, llvm::ArrayRef<bool> fixed, AxisSet taken, Claims &claims) const;
  AxisSet dropClaimsOfGathered(const Op &op, AxisSet taken, Claims &claims) const;
  AxisSet findCopiesOfGroups(const Op &op) const;
  unsigned choose(Op &op, AxisId axis, llvm::ArrayRef<Claim> claims, llvm::ArrayRef<AxisSet> others) const;
  __int128 getBytesMoved(Op &op, AxisId axis, unsigned index, llvm::ArrayRef<Claim> claims,
                         llvm::ArrayRef<AxisSet> others) const;
  AxisList orderAxes(const Op &op, unsigned index, AxisSet axes) const;
  bool isGathered(const Value *value, AxisId axis, const Op &user) const;

  Graph &graph;
  const WantedShardings &wanted;
  DiagnosticEngine &diags;
  /// Per value and block: axes over which some op of the block needs it gathered.
  llvm::DenseMap<std::pair<const Value *, const Block *>, AxisSet> gathered;
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_SETTLEAXES_H
