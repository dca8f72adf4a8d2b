//===- Sources.h - what a proof starts from --------------------*- C++ -*-===//
//
// Parameters, buffers and inputs are drawn, the same for everybody who asks: a number
// depends on which of them it belongs to, on the iteration or microbatch, and on its
// position. Parameters are known by their order in the program, which passes keep.
//
// Integers that lead into a dim (ids of a table, what a router chose) are positions of it,
// wherever they come from: an input draws them, an opaque operator deals them out in turn. In inference what it deals
// out to a token depends on the places of this one (Places.h), as tokens do; but where slots are equally many on each
// rank, and a proof needs choices that fill them (Tiles.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_SOURCES_H
#define STAGE_LIB_INTERP_SOURCES_H

#include "Tiles.h"
#include "stage/Schedule/PackedUnit.h"
#include <map>
#include <set>

namespace stage::interp {

class Sources {
public:
  /// Drawn numbers lie in (-0.8, 1) * scale. `served`: the units of a graph whose units are of several sequences.
  explicit Sources(const Graph &graph, double scale = 1, const ServedUnits *served = nullptr);

  /// All of a parameter or buffer (in an iteration of its repeat), or of an input (in a microbatch).
  TensorRef draw(const Value *value, uint64_t instance);
  /// Gives one of them in place of what is drawn; to an input, what another part sends.
  void set(const Value *value, uint64_t instance, TensorRef tensor) {
    known[{value, instance}] = tensor;
    given.insert({value, instance});
  }
  /// What a unit has of which sequences; null: it has all of one length.
  const PackedUnit *findPackedUnit(uint64_t microbatch) const { return served ? &served->units[microbatch] : nullptr; }
  bool isGiven(const Value *value, uint64_t instance) const { return given.count({value, instance}); }
  TensorRef getConstant(const Value *constant);
  /// Number of a parameter, buffer, input or random operator in the program; equal in every graph of one program.
  unsigned getOrdinal(const Op *op) const { return ordinals.lookup(op); }
  /// The op whose random numbers an op draws: for what differentiation made of a random operator, that one.
  const Op *getDrawer(const Op *op) const {
    auto it = drawers.find(op);
    return it == drawers.end() ? op : it->second;
  }
  /// Integers stay below this: the smallest dim that they lead into.
  int64_t getLimit(const Value *value) const { return findLimit(value).value_or(2); }
  std::optional<int64_t> findLimit(const Value *value) const {
    if (const Op *op = value->getOp(); op && op->isRecomputed && op->origin)
      value = op->origin->getResult(value->getNumber()); // dealt out as it was
    auto it = limits.find(value);
    return it == limits.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  /// How the integers of a value are cut by which ops route; null: they do not.
  const Tiles *findTiles(const Value *value) const;
  /// Deals out the integers of this graph to the tokens of each rank of another one, of the same program.
  void adoptTiles(const Sources &other) { tiles = other.tiles; }
  /// Parameters, in the order of the program.
  llvm::ArrayRef<const Value *> getParams() const { return params; }

  /// Lets a value and what it is a copy of be less than `size`, where it is an integer.
  void limit(const Value *value, int64_t size);

  /// True for values that are there without being computed or received.
  static bool isSource(const Value *value);

private:
  std::optional<Tensor> makeTensor(const Value *value);
  void fillByPlace(Tensor &tensor, const Op &input, uint64_t microbatch) const;
  void findLimits(const Op &op);
  void noteTiles(const Op &op);
  void findDrawers();

  const Graph &graph;
  double scale;
  const ServedUnits *served;
  PieceMap pieces;
  llvm::DenseMap<const Op *, unsigned> ordinals;
  llvm::DenseMap<const Op *, const Op *> drawers;
  std::vector<const Value *> params;
  llvm::DenseMap<const Value *, int64_t> limits;
  /// By whether an op deals them out, the number of that or of the input, and the number of the result.
  std::map<std::tuple<bool, unsigned, unsigned>, Tiles> tiles;
  std::map<std::pair<const Value *, uint64_t>, TensorRef> known;
  std::set<std::pair<const Value *, uint64_t>> given; ///< Of these, those that are not drawn.
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_SOURCES_H
