//===- SlotShares.h - which work is on slots without a token ---*- C++ -*-===//
//
// Problem: an op that routes (OpDef.h) has slots for more tokens than come, or fewer. What is computed on slots that
// stay empty is no work of the model; and what is left out should be known.
//
//   dispatch   4 tokens, 2 choices each -> 4 targets of 3 slots        8 of 12 slots are filled
//   product    12 * D * F multiply-adds                                8 * D * F of the model, 4 * D * F of padding
//
// Where a load says how many choices each target gets (SlotLoad), and all have equally many slots, some may be full
// while others are not.
//
// Algorithm: the dim of slots is followed from the op that makes it through all that has its index, forward and
// backward. Where an op routes what is in slots (to nodes, and there to experts), slots of these without a token are no
// choices.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_SLOTSHARES_H
#define STAGE_LIB_REPORT_SLOTSHARES_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Choices of tokens, and slots for them, of all ranks together.
struct SlotShare {
  Size choices, slots;
  const SlotLoad *load = nullptr; ///< Null: targets get equally many.
  Size targets;                   ///< How many there are.

  /// How many slots have a token; nothing if a size has no value.
  std::optional<Rational> countFilled(const SizeBinding &binding) const;
};

class SlotShares {
public:
  explicit SlotShares(Graph &graph);
  /// Of an op whose work is done once per slot; null for others.
  const SlotShare *find(const Op &op) const {
    auto it = ofOps.find(&op);
    return it == ofOps.end() ? nullptr : &it->second;
  }
  bool hasSlots(const Value &value) const { return ofValues.count(&value); }
  /// What an op routes; nothing if it does not, or not to slots, or into those of an op before it that routes by the
  /// same integers.
  std::optional<SlotShare> getRouted(const Op &op) const;

private:
  SlotShare getShare(const Op &op, const Routing &routing) const;
  void visit(const Op &op);

  const Graph &graph;
  /// Per value the dim that is slots.
  llvm::DenseMap<const Value *, std::pair<unsigned, SlotShare>> ofValues;
  llvm::DenseMap<const Op *, SlotShare> ofOps;
  /// By the integers that say where tokens go, who fills slots first.
  llvm::DenseMap<const Value *, const Op *> firstByIntegers;
};

} // namespace stage

#endif // STAGE_LIB_REPORT_SLOTSHARES_H
