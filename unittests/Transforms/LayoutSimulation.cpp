//===- LayoutSimulation.cpp - what ranks hold of a tensor -----------------===//
#include "LayoutSimulation.h"
#include <algorithm>
#include <set>

using namespace stage::test;

int Layout::getCoordinate(int rank, int axis) const {
  for (int i = axisSizes.size() - 1; i > axis; --i)
    rank /= axisSizes[i];
  return rank % axisSizes[axis];
}

int64_t Layout::getLocalElements() const {
  int64_t elements = 1;
  for (const auto &list : ranks.front().positions)
    elements *= list.size();
  return elements;
}

/// Position of a rank in its group.
static int getNumber(const Layout &layout, int rank, const std::vector<int> &axes) {
  int number = 0;
  for (int axis : axes)
    number = number * layout.axisSizes[axis] + layout.getCoordinate(rank, axis);
  return number;
}

static int getGroupSize(const Layout &layout, const std::vector<int> &axes) {
  int size = 1;
  for (int axis : axes)
    size *= layout.axisSizes[axis];
  return size;
}

/// The members of the group of a rank, in their order.
static std::vector<int> getGroup(const Layout &layout, int rank, const std::vector<int> &axes) {
  std::vector<int> members(getGroupSize(layout, axes));
  for (int other = 0; other < int(layout.ranks.size()); ++other) {
    bool same = true;
    for (int axis = 0; axis < int(layout.axisSizes.size()); ++axis)
      same &= std::count(axes.begin(), axes.end(), axis) != 0 ||
              layout.getCoordinate(rank, axis) == layout.getCoordinate(other, axis);
    if (same)
      members[getNumber(layout, other, axes)] = other;
  }
  return members;
}

/// The part of a list with this number; false if the parts are not equally long.
static bool takePart(std::vector<int> &list, int number, int parts) {
  if (list.size() % parts != 0)
    return false;
  size_t length = list.size() / parts;
  list = std::vector<int>(list.begin() + number * length, list.begin() + (number + 1) * length);
  return true;
}

Layout stage::test::makeLayout(const std::vector<int> &axisSizes, const std::vector<int> &extents,
                               const std::vector<std::vector<int>> &dims, uint32_t partial, uint32_t addends) {
  Layout layout;
  layout.axisSizes = axisSizes;
  int ranks = 1;
  for (int size : axisSizes)
    ranks *= size;
  layout.ranks.resize(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    Piece &piece = layout.ranks[rank];
    for (size_t d = 0; d < extents.size(); ++d) {
      std::vector<int> list(extents[d]);
      for (int i = 0; i < extents[d]; ++i)
        list[i] = i;
      takePart(list, getNumber(layout, rank, dims[d]), getGroupSize(layout, dims[d]));
      piece.positions.push_back(list);
    }
    // An addend is a rank's coordinates on `addends`; name it by the first rank that has them.
    piece.contributors = 0;
    for (int other = 0; other < ranks; ++other) {
      bool first = true, agrees = true;
      for (int axis = 0; axis < int(axisSizes.size()); ++axis) {
        first &= (addends >> axis & 1) || layout.getCoordinate(other, axis) == 0;
        agrees &= !(partial >> axis & 1) || layout.getCoordinate(other, axis) == layout.getCoordinate(rank, axis);
      }
      if (first && agrees)
        piece.contributors |= uint32_t(1) << other;
    }
  }
  return layout;
}

std::optional<Layout> stage::test::allGather(const Layout &from, const std::vector<int> &axes, int dim) {
  Layout to = from;
  for (int rank = 0; rank < int(from.ranks.size()); ++rank) {
    std::vector<int> &all = to.ranks[rank].positions[dim];
    all.clear();
    for (int member : getGroup(from, rank, axes)) {
      Piece alike = from.ranks[member];
      alike.positions[dim] = from.ranks[rank].positions[dim];
      if (alike != from.ranks[rank])
        return std::nullopt;
      const std::vector<int> &part = from.ranks[member].positions[dim];
      all.insert(all.end(), part.begin(), part.end());
    }
    if (std::set<int>(all.begin(), all.end()).size() != all.size())
      return std::nullopt;
  }
  return to;
}

std::optional<Layout> stage::test::allReduce(const Layout &from, const std::vector<int> &axes) {
  Layout to = from;
  for (int rank = 0; rank < int(from.ranks.size()); ++rank) {
    uint32_t sum = 0;
    for (int member : getGroup(from, rank, axes)) {
      const Piece &piece = from.ranks[member];
      if (piece.positions != from.ranks[rank].positions || (sum & piece.contributors))
        return std::nullopt;
      sum |= piece.contributors;
    }
    to.ranks[rank].contributors = sum;
  }
  return to;
}

std::optional<Layout> stage::test::slice(const Layout &from, const std::vector<int> &axes, int dim) {
  Layout to = from;
  for (int rank = 0; rank < int(from.ranks.size()); ++rank)
    if (!takePart(to.ranks[rank].positions[dim], getNumber(from, rank, axes), getGroupSize(from, axes)))
      return std::nullopt;
  return to;
}

std::optional<Layout> stage::test::reduceScatter(const Layout &from, const std::vector<int> &axes, int dim) {
  std::optional<Layout> reduced = allReduce(from, axes);
  return reduced ? slice(*reduced, axes, dim) : std::nullopt;
}

std::optional<Layout> stage::test::allToAll(const Layout &from, const std::vector<int> &axes, uint32_t sources,
                                            int target) {
  if (sources >> target & 1)
    return std::nullopt;
  Layout to = from;
  for (int rank = 0; rank < int(from.ranks.size()); ++rank) {
    Piece &piece = to.ranks[rank];
    std::vector<int> group = getGroup(from, rank, axes);
    // What arrives fills a box: every combination of the parts of the source dims, each once.
    std::vector<std::set<std::vector<int>>> parts(piece.positions.size());
    std::set<std::vector<std::vector<int>>> combinations;
    for (int member : group) {
      const Piece &other = from.ranks[member];
      std::vector<std::vector<int>> combination;
      for (int d = 0; d < int(piece.positions.size()); ++d) {
        if (sources >> d & 1) {
          parts[d].insert(other.positions[d]);
          combination.push_back(other.positions[d]);
        } else if (other.positions[d] != from.ranks[rank].positions[d]) {
          return std::nullopt;
        }
      }
      if (other.contributors != piece.contributors)
        return std::nullopt;
      combinations.insert(combination);
    }
    size_t box = 1;
    for (int d = 0; d < int(piece.positions.size()); ++d) {
      if (!(sources >> d & 1))
        continue;
      box *= parts[d].size();
      std::vector<int> &all = piece.positions[d];
      all.clear();
      for (const std::vector<int> &part : parts[d])
        all.insert(all.end(), part.begin(), part.end());
      if (parts[d].size() == 1 || std::set<int>(all.begin(), all.end()).size() != all.size())
        return std::nullopt;
    }
    if (combinations.size() != group.size() || box != group.size() ||
        !takePart(piece.positions[target], getNumber(from, rank, axes), group.size()))
      return std::nullopt;
  }
  return to;
}
