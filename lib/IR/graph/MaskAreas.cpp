//===- MaskAreas.cpp - the pairs under a mask on a rank -------------------===//
//
// Problem: of an op with a mask (causal attention) only some pairs of a row s and a
// column t cost anything, and a rank has a share of them that depends on where its
// rows and columns are. The shares must add up to the whole for every layout.
//
//   mask causal(s, t), S = 4n, 2 ranks    blocked            mirrored
//     rank 0 has rows                     [0, 2n)            [0, n) and [3n, 4n)
//     pairs                               2n*n               n*n/2 + (3n*n + n*n/2)
//     rank 1 has rows                     [2n, 4n)           [n, 3n)
//     pairs                               6n*n               4n*n
//
// Algorithm: pairs are an area of the plane, in which a triangle of side n has n*n/2,
// as the field counts (law L2). What a rank has of an index is a list of ranges: one
// where its axes are blocked, two after mirrored ones. A(r, c) is the area of the first
// r rows and c columns, so a rectangle has A at its far corner, less A at its two side
// corners, plus A at the near one; a rank has the sum over its ranges. Everything is an
// expression over the coordinates; where they cancel nothing depends on the rank.
//
// Of rows and columns that are both mirrored over the same axes, if one of them over further ones, too, every rank has
// half of its rectangle, also where the columns are another rank's (in a ring): the later piece of the rows sees all of
// the earlier piece of the columns, and none the other way; of the two earlier pieces and the two later ones,
// who sees more in the one sees as much less in the other. No coordinate stands in that.
//
// Rows and columns stand where their dims begin (`dim step from context - step`): queries of a
// decode step behind those that have been before, keys of a window at the first that is kept.
// One row is no triangle: a decode step's query over T cached keys and its own counts
// T + 1.
//
// Of packed sequences each has an area of its own. What one has is an expression over its sizes, once for several rows
// and once for one, whose sum over the sequences units bind (SequenceSum); twice the area, as a triangle's may be a
// half.
//
// Columns that are dealt out in turn, as positions in caches are, are counted row by row. All rows are on each rank
// then.
//
// Limits: ranges double with each change from blocked to mirrored axes of one index.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Packing.h"

using namespace stage;

namespace {
/// Positions [begin, end) of an index.
struct Range {
  Size begin, end;
};

class MaskArea {
public:
  /// Unless `isSingle` says so, that there is one row only follows from the binding.
  MaskArea(const Graph &graph, const Op &op, const Mask &mask, std::optional<bool> isSingle = std::nullopt)
      : graph(graph), sizes(graph.sizes), op(op), mask(mask), isSingle(isSingle), rows(op.extents[mask.rows].size),
        columns(op.extents[mask.columns].size),
        offset(mask.kind == Mask::Kind::Causal && mask.amount ? mask.amount : sizes.zero()) {}

  Size run() const {
    if (isHalf())
      return getLocalLength(mask.rows) * getLocalLength(mask.columns) / 2;
    if (isInTurn(mask.columns))
      return getAreaInTurn();
    auto rowRanges = getRanges(mask.rows), columnRanges = getRanges(mask.columns);
    // What a kept window leaves out no row sees: all of the plane that is cut off is a corner of its first column,
    // which counts.
    bool isWindow = keepsWindow(), isWhole = isWindow || (getAxes(mask.columns).empty() && !getOrigin(mask.columns));
    // With all columns and no more rows no row is cut short, and no `min` is needed.
    Size firstRow = getOrigin(mask.rows) ? getOrigin(mask.rows) : sizes.zero();
    bool fits = isWindow || (isWhole && columns == firstRow + rows + offset);
    if (mask.kind != Mask::Kind::Full && isSingleRow() && getAxes(mask.rows).empty())
      rowRanges.clear();
    Size area = sizes.zero();
    for (const Range &s : rowRanges)
      for (const Range &t : columnRanges) {
        area = area + getArea(s.end, t.end, fits) - getArea(s.begin, t.end, fits);
        if (!isWhole)
          area = area - getArea(s.end, t.begin, false) + getArea(s.begin, t.begin, false);
      }
    // A row alone, of a unit that has no more, has no triangle: it sees all of itself.
    if (mask.kind == Mask::Kind::Causal && fits && !isSingle && !rowRanges.empty() && getOrigin(mask.rows) &&
        getAxes(mask.rows).empty() && graph.variesByUnit(rows))
      area = area + max(sizes.constant(Rational{2, 1}) - rows, sizes.zero()) / 2;
    if (rowRanges.empty()) {
      // The one row sees columns of [first, last).
      Size last = firstRow + offset + 1, first = sizes.zero();
      if (mask.kind == Mask::Kind::Window)
        first = max(firstRow + 1 - mask.amount, first);
      else if (mask.kind == Mask::Kind::Blocks)
        first = firstRow.floorDiv(mask.amount) * mask.amount;
      if (fits)
        return last - first;
      for (const Range &t : columnRanges)
        area = area + min(t.end, last) - min(t.begin, last) - (min(t.end, first) - min(t.begin, first));
    }
    return area;
  }

private:
  llvm::ArrayRef<PlacedAxis> getAxes(unsigned index) const {
    return index < op.indexAxes.size() ? llvm::ArrayRef<PlacedAxis>(op.indexAxes[index]) : llvm::None;
  }

  bool isHalf() const {
    llvm::ArrayRef<PlacedAxis> rowAxes = getAxes(mask.rows), columnAxes = getAxes(mask.columns);
    auto isMirrored = [](const PlacedAxis &axis) { return axis.layout == Layout::Mirrored; };
    auto isSame = [](auto pair) { return std::get<0>(pair).id == std::get<1>(pair).id; };
    return mask.kind == Mask::Kind::Causal && rows == columns && offset == sizes.zero() && !getOrigin(mask.rows) &&
           !getOrigin(mask.columns) && !rowAxes.empty() && !columnAxes.empty() && llvm::all_of(rowAxes, isMirrored) &&
           llvm::all_of(columnAxes, isMirrored) && llvm::all_of(llvm::zip(rowAxes, columnAxes), isSame);
  }

  //===--- Columns in turn --------------------------------------------------===//

  bool isInTurn(unsigned index) const { return !getAxes(index).empty() && getAxes(index).front().isCyclic(); }

  /// Pairs of rows [0, end) with columns up to the row that the rank has. These are ceil((s + 1 - c) / n) for row s, on
  /// coordinate c of n: a sum of 1 to y of ceil(i / n) is
  ///   n a (a + 1) / 2 + b (a + 1)                    a = y div n, b = y mod n
  Size countPairsInTurn(Size end) const {
    const Axis &axis = graph.mesh[getAxes(mask.columns).front()];
    Size n = axis.symbol, y = max(end - getCoordinateSymbol(sizes, axis), sizes.zero()), a = y.floorDiv(n);
    return n * a * (a + 1) / 2 + (y - a * n) * (a + 1);
  }

  /// Pairs of rows [begin, end) with columns up to the row, where each counts half of the last one: a triangle's
  /// diagonal.
  Size getTriangleInTurn(Size begin, Size end) const {
    llvm::ArrayRef<PlacedAxis> axes = getAxes(mask.columns);
    return countPairsInTurn(end) - countPairsInTurn(begin) -
           (countInTurn(graph, end, axes) - countInTurn(graph, begin, axes)) / 2;
  }

  /// All rows are on each rank.
  Size getAreaInTurn() const {
    Size first = getOrigin(mask.rows) ? getOrigin(mask.rows) : sizes.zero(), zero = sizes.zero(), w = mask.amount;
    auto count = [&](Size end) { return countInTurn(graph, min(end, columns), getAxes(mask.columns)); };
    switch (mask.kind) {
    case Mask::Kind::Full:
      return getLocalLength(mask.rows) * count(columns);
    case Mask::Kind::Causal:
      return isSingleRow() ? count(first + offset + 1) : getTriangleInTurn(first + offset, first + offset + rows);
    case Mask::Kind::Window:
      if (isSingleRow())
        return count(first + 1) - count(max(first + 1 - w, zero));
      return getTriangleInTurn(first, first + rows) -
             getTriangleInTurn(max(first - w, zero), max(first + rows - w, zero));
    case Mask::Kind::Blocks: // of a single row (VerifySharding)
      return count(first + 1) - count(first.floorDiv(w) * w);
    }
    llvm_unreachable("all kinds handled");
  }

  /// The columns are those that some row has in its window, and no more: what a cache keeps of it, and the rows' own.
  bool keepsWindow() const {
    if (mask.kind != Mask::Kind::Window || !getOrigin(mask.columns) || !getOrigin(mask.rows) ||
        !getAxes(mask.columns).empty())
      return false;
    Size kept = columns;
    for (const SequenceSum &sum : graph.sums)
      if (sum.symbol == columns.getSymbol())
        kept = sum.ofSeveral;
    return kept == min(getOrigin(mask.rows) + rows, mask.amount - 1 + rows);
  }

  Size getLocalLength(unsigned index) const {
    return op.extents[index].size / graph.mesh.getGroupSymbol(sizes, getAxes(index));
  }

  bool isSingleRow() const {
    if (isSingle)
      return *isSingle;
    SizeValue value = evaluateCount(rows, graph.binding);
    return value && value.value.num == 1;
  }

  /// The position of an index's first element; null: 0.
  Size getOrigin(unsigned index) const {
    const Dim *dim = op.extents[index].dim;
    return dim ? dim->origin : Size();
  }

  //===--- Ranges ---------------------------------------------------------===//

  llvm::SmallVector<Range, 2> getRanges(unsigned index) const {
    Size length = op.extents[index].size;
    llvm::SmallVector<Range, 2> ranges{{sizes.zero(), length}};
    llvm::ArrayRef<PlacedAxis> axes = getAxes(index);
    while (!axes.empty()) {
      // Neighbours of one layout are one axis: mirrored over each is mirrored over their ranks.
      Layout layout = axes.front().layout;
      auto run = axes.take_while([&](const PlacedAxis &axis) { return axis.layout == layout; });
      axes = axes.drop_front(run.size());
      Size position = sizes.zero();
      for (const PlacedAxis &axis : run) {
        Size size = graph.mesh[axis].symbol, part = getCoordinateSymbol(sizes, graph.mesh[axis]);
        position = position * size + (axis.rotation ? (part + axis.rotation).mod(size) : part);
      }
      Size parts = graph.mesh.getGroupSymbol(sizes, run);
      llvm::SmallVector<Range, 2> mine;
      if (layout == Layout::Mirrored) {
        Size piece = length / (parts * 2), last = parts * 2 - 1 - position;
        take(ranges, position * piece, (position + 1) * piece, mine);
        take(ranges, last * piece, (last + 1) * piece, mine);
      } else {
        Size piece = length / parts;
        take(ranges, position * piece, (position + 1) * piece, mine);
      }
      length = length / parts;
      ranges = std::move(mine);
    }
    if (Size origin = getOrigin(index))
      for (Range &range : ranges)
        range = {range.begin + origin, range.end + origin};
    return ranges;
  }

  /// Appends what [begin, end) of the ranges, one after the other, is.
  void take(llvm::ArrayRef<Range> ranges, Size begin, Size end, llvm::SmallVectorImpl<Range> &taken) const {
    if (ranges.size() == 1) {
      taken.push_back({ranges[0].begin + begin, ranges[0].begin + end});
      return;
    }
    Size before = sizes.zero();
    for (const Range &range : ranges) {
      Size length = range.end - range.begin;
      auto clip = [&](Size place) { return range.begin + min(max(place - before, sizes.zero()), length); };
      taken.push_back({clip(begin), clip(end)});
      before = before + length;
    }
  }

  //===--- Areas ----------------------------------------------------------===//

  /// Of rows [0, r) and columns [0, c). `fits`: no row of these sees more than c columns.
  Size getArea(Size r, Size c, bool fits) const {
    switch (mask.kind) {
    case Mask::Kind::Full:
      return r * c;
    case Mask::Kind::Causal:
      return getCausal(r, c, fits);
    case Mask::Kind::Window:
      // All before, less those before the window.
      return getCausal(r, c, fits) - getCausal(max(r - mask.amount, sizes.zero()), c, fits);
    case Mask::Kind::Blocks:
      return getBlocks(r, c, fits);
    }
    llvm_unreachable("all kinds handled");
  }

  /// Column t of row s counts up to t = s + offset: a triangle, a rectangle before it for the offset, and full rows
  /// below where there are more rows than columns.
  Size getCausal(Size r, Size c, bool fits) const {
    Size side = fits ? r : min(r, max(c - offset, sizes.zero()));
    return side * offset + side * side / 2 + (r - side) * c;
  }

  /// Triangles along the diagonal; of the one that the columns end in, also the rows below.
  Size getBlocks(Size r, Size c, bool fits) const {
    Size n = mask.amount, side = fits ? r : min(r, c);
    Size full = side.floorDiv(n), rest = side - full * n;
    Size area = full * n * n / 2 + rest * rest / 2;
    return fits ? area : area + (min(r, (full + 1) * n) - side) * rest;
  }

  const Graph &graph;
  SizeContext &sizes;
  const Op &op;
  const Mask &mask;
  std::optional<bool> isSingle;
  Size rows, columns, offset;
};
} // namespace

Size stage::countInTurn(const Graph &graph, Size end, llvm::ArrayRef<PlacedAxis> axes) {
  if (axes.empty())
    return end;
  const Axis &axis = graph.mesh[axes.front()];
  return max(end - getCoordinateSymbol(graph.sizes, axis), graph.sizes.zero()).ceilDiv(axis.symbol);
}

static const Mask *findMask(const Op &op) {
  if (!op.def)
    return nullptr;
  const OpDef &masked = op.def->vjpOf ? *op.def->vjpOf : *op.def;
  return masked.mask ? &*masked.mask : nullptr;
}

Size stage::getLocalMaskArea(const Graph &graph, const Op &op) {
  const Mask *mask = findMask(op);
  if (!mask)
    return Size();
  SequenceSum packed = getTwiceMaskArea(graph, op);
  const SequenceSum *sum = packed.ofSeveral ? findSum(graph, packed) : nullptr;
  return sum ? graph.sizes.symbol(sum->symbol) / 2 : MaskArea(graph, op, *mask).run();
}

Size stage::ofOnePosition(const Graph &graph, Size ofSeveral, const Dim &rows) {
  return substitute(ofSeveral, [&](llvm::StringRef symbol) {
    return graph.sizes.symbol(symbol) == rows.size ? graph.sizes.one() : Size();
  });
}

SequenceSum stage::getTwiceMaskArea(const Graph &graph, const Op &op) {
  const Mask *mask = findMask(op);
  const Dim *rows = mask ? op.extents[mask->rows].dim : nullptr;
  if (!rows || !rows->isPacked)
    return {};
  auto getTwice = [&](bool isSingle) { return MaskArea(graph, op, *mask, isSingle).run() * 2; };
  return {"", getTwice(/*isSingle=*/false), ofOnePosition(graph, getTwice(/*isSingle=*/true), *rows), op.loc};
}
