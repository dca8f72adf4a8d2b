//===- Tiles.h - the tokens of each rank -----------------------*- C++ -*-===//
//
// Problem: ranks route each the tokens that they have, and each has as many slots per target as tokens that are equally
// spread would take. A proof needs integers that are: on one device as on the ranks, whatever pieces these have.
//
// Algorithm: along each dim of the integers the pieces that the op has which routes by them, its *tiles*. The choices
// of the tokens of a tile go to one target after the other, counted around.
//
//     b = 0   s: 0 1 | 2 3       4 targets, one choice each, tiles of 2 by 2:    0 1 | 2 3
//     b = 1      0 1 | 2 3                                                       2 3 | 0 1
//
// Where a load says how many choices of a tile each target gets (SlotLoad), so many do: those of the first targets come
// first, and choices are dealt out with a stride that has no divisor in common with their number, so that each tile
// mixes targets.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_TILES_H
#define STAGE_LIB_INTERP_TILES_H

#include "stage/Interp/Tensor.h"

namespace stage::interp {

struct Tiles {
  struct Dim {
    std::vector<int64_t> local; ///< Of each position: which one of its tile it is,
    std::vector<int64_t> first; ///< and the first position of the tile.
    int64_t length = 0;         ///< Of a tile.
  };
  llvm::SmallVector<Dim, 4> dims;
  /// Of each target the choices of a tile that it and those before it get; empty: all equally many.
  std::vector<int64_t> ends;

  /// False for integers of other sizes, as units that bind other sizes have them.
  bool fit(llvm::ArrayRef<int64_t> sizes) const;
  /// The integer at these positions, below `limit`.
  int64_t deal(llvm::ArrayRef<int64_t> positions, uint64_t identity, int64_t limit) const;
};

/// True for an op that routes to slots, or from them, which are equally many whatever a load says.
bool dropsTokens(const Graph &graph, const Op &op);
/// The tiles of the integers by which an op routes; nothing if it does not.
std::optional<Tiles> findTiles(const Graph &graph, const Op &op);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_TILES_H
