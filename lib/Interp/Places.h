//===- Places.h - which positions of sequences a unit has ------*- C++ -*-===//
//
// Units of inference that go on with the same sequences have the same tokens at the same positions of them, and what is
// drawn for a token is the same in each. So numbers are drawn by *places*: of a position of a tensor those among the
// positions of all units, in its sequence, and among all sequences.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_PLACES_H
#define STAGE_LIB_INTERP_PLACES_H

#include "Stretches.h"
#include <optional>

namespace stage::interp {

class Places {
public:
  /// Of a tensor of this shape, under the sizes that the graph has now. `unit`: what the unit has of several sequences,
  /// or null.
  Places(const Graph &graph, llvm::ArrayRef<Extent> shape, const PackedUnit *unit);
  /// Appends the place of each position.
  void append(llvm::ArrayRef<int64_t> positions, llvm::SmallVectorImpl<uint64_t> &words) const;

private:
  llvm::SmallVector<Extent, 4> shape;
  llvm::SmallVector<int64_t, 4> origins; ///< Where a unit has as much of each sequence.
  const PackedUnit *unit;
  std::optional<Stretches> stretches; ///< Of `unit`.
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_PLACES_H
