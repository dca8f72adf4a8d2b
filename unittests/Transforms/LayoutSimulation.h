//===- LayoutSimulation.h - what ranks hold of a tensor --------*- C++ -*-===//
//
// Simulates collectives on what every rank of a tiny mesh really holds, element by
// element, knowing nothing of shardings: the judge of plans that are made of rules.
//
// What a rank holds is always a box, so it is kept as one: per dim the positions it
// has, in the order in which its local array has them; and for all of its elements
// the same set of contributors, the ranks' addends that have gone into its sum.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_TRANSFORMS_LAYOUTSIMULATION_H
#define STAGE_UNITTESTS_TRANSFORMS_LAYOUTSIMULATION_H

#include <cstdint>
#include <optional>
#include <vector>

namespace stage::test {

struct Piece {
  std::vector<std::vector<int>> positions; ///< Per dim.
  uint32_t contributors = 1;               ///< Bit i: contributor i.
  bool operator==(const Piece &) const = default;
};

/// What all ranks hold.
struct Layout {
  std::vector<int> axisSizes; ///< Of the mesh; the last axis varies fastest with the rank.
  std::vector<Piece> ranks;

  int getCoordinate(int rank, int axis) const;
  /// Elements on a rank (the same on all).
  int64_t getLocalElements() const;
};

/// What the ranks hold if dim d is cut over dims[d], outer first. The addends are one per coordinate on `addends`;
/// a rank has those that agree with it on `partial`, a part of these.
Layout makeLayout(const std::vector<int> &axisSizes, const std::vector<int> &extents,
                  const std::vector<std::vector<int>> &dims, uint32_t partial, uint32_t addends);

/// Each op over groups of ranks that differ on `axes` only, members counted with the first axis outermost. Nothing if
/// it cannot be done: pieces that do not fit together, sums that would count an addend twice, a dim that does not
/// divide.
std::optional<Layout> allGather(const Layout &from, const std::vector<int> &axes, int dim);
std::optional<Layout> allReduce(const Layout &from, const std::vector<int> &axes);
std::optional<Layout> reduceScatter(const Layout &from, const std::vector<int> &axes, int dim);
/// `sources`: bit set of the dims along which what is received is put together.
std::optional<Layout> allToAll(const Layout &from, const std::vector<int> &axes, uint32_t sources, int target);
std::optional<Layout> slice(const Layout &from, const std::vector<int> &axes, int dim);

} // namespace stage::test

#endif // STAGE_UNITTESTS_TRANSFORMS_LAYOUTSIMULATION_H
