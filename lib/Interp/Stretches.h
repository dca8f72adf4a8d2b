//===- Stretches.h - where sequences are in a unit of several --*- C++ -*-===//
//
// In a packed dim (stage/IR/Packing.h) positions of several sequences stand one behind the other:
//
//   i2 p1+3@4 1d+1@2      S         rows 0..2 are positions 4, 5, 6 of one sequence, row 3 is position 2 of another
//                         context   columns 0..6 are positions 0..6 of the one, columns 7..9 are 0, 1, 2 of the other
//                         sampled   row 0 is position 6 of the one, row 1 position 2 of the other, if both sample
//
// To run an op on them is to run it on one sequence after the other: on its stretch of each packed dim, whose first
// position in the sequence is the origin from which formulas count.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_STRETCHES_H
#define STAGE_LIB_INTERP_STRETCHES_H

#include "stage/IR/graph/PackedUnits.h"

namespace stage::interp {

/// Of a dim what one sequence has: `count` places from `begin`, the first of which is position `first` of the sequence.
struct Stretch {
  int64_t begin = 0, count = 0, first = 0;
  bool contains(int64_t place) const { return place >= begin && place < begin + count; }
  int64_t getOrigin() const { return first - begin; }
};

class Stretches {
public:
  Stretches(const Graph &graph, const PackedUnit &unit);

  /// Positions of several sequences stand in it.
  static bool isPacked(const Extent &extent) { return extent.dim && (extent.dim->isPacked || extent.dim->isOptional); }
  /// Of a packed dim, for the i-th sequence of the unit.
  Stretch get(const Dim &dim, size_t i) const;

private:
  int64_t count(const Dim &dim, size_t i) const;

  const PackedUnit &unit;
  std::vector<SizeBinding> bindings; ///< Per sequence: its own sizes.
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_STRETCHES_H
