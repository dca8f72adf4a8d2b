//===- Network.h - a machine's network as ASTRA-sim has it -----*- C++ -*-===//
//
// Problem: ASTRA-sim's analytical network has dimensions of equal groups: rank r has coordinates in them, those of
// dimension 0 vary fastest. A machine has levels, which a job uses in part. What are the dimensions?
//
//   h100: node of 8 ranks, rail of 16,384       8 ranks    [8]      one node
//                                              64 ranks    [8, 8]   8 nodes
//                                              12 ranks    [6, 2]   2 nodes, 6 ranks of each are used
//   gb200: nvlink of 72 ranks, rail             64 ranks    [64]     64 of 72
//
// Algorithm: Machine::usedBy says how many ranks of each level a job uses. A dimension is what a level adds; one of a
// single group is left out. A mesh `on topology` says the dimensions itself: each gets the innermost level that holds
// all ranks that differ in this dimension and those inside of it.
//
// How ASTRA-sim times a message: by the *innermost* dimension in which sender and receiver differ. A machine times it
// by the outermost one. They agree where the two ranks differ in one dimension alone, which ring orders make use of:
//
//   [4, 2], ranks 0 1 4 5     ring 0 1 5 4: from 1 to 5 and from 4 to 0 between groups, each in one dimension
//                             ring 0 1 4 5: from 1 to 4 both dimensions differ, and ASTRA-sim takes it for inside
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_ASTRASIM_NETWORK_H
#define STAGE_ASTRASIM_NETWORK_H

#include "stage/Machine/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace stage::astrasim {

/// What connects the ranks of a dimension, of those blocks that ASTRA-sim knows.
enum class BuildingBlock : uint8_t { Switch };
llvm::StringRef getName(BuildingBlock block);
/// Links that a message passes from one rank of a dimension to the next one, each with the dimension's latency.
unsigned getNumLinks(BuildingBlock block);

struct NetworkDim {
  BuildingBlock block = BuildingBlock::Switch;
  int64_t ranks = 1;         ///< That differ in this dimension alone.
  const MachineLevel *level; ///< Whose rate and latency it has.
};

class Network {
public:
  /// `dims`: from the inside out.
  explicit Network(std::vector<NetworkDim> dims) : dims(std::move(dims)) {}
  /// The levels of a machine that holds so many ranks, as far as they use it.
  static Network makeFromLevels(const Machine &machine, int64_t numRanks);
  /// The dimensions of these sizes on a machine that holds all ranks. Those of size 1 are left out.
  static Network makeFromSizes(const Machine &machine, llvm::ArrayRef<int64_t> sizes);

  llvm::ArrayRef<NetworkDim> getDims() const { return dims; }
  int64_t getNumRanks() const { return getStride(dims.size()); }
  /// Ranks that differ in dimensions inside of this one.
  int64_t getStride(size_t dim) const;
  int64_t getCoordinate(int64_t rank, size_t dim) const { return rank / getStride(dim) % dims[dim].ranks; }
  /// The innermost and the outermost dimension in which two ranks differ. They must not be the same rank.
  unsigned findInnermost(int64_t a, int64_t b) const;
  unsigned findOutermost(int64_t a, int64_t b) const;
  /// The level at which the machine has blocks of several, but not all, ranks that differ in a dimension; null: there
  /// is none, and the dimension has one rate.
  static const MachineLevel *findSpannedLevel(const Machine &machine, int64_t stride, int64_t ranks);

  /// Ranks, ascending, in an order in which each differs from the one before in one dimension alone, where the ranks
  /// are all combinations of their coordinates: from group to group of a dimension the order inside turns around
  /// (a reflected Gray code).
  std::vector<uint32_t> orderRing(llvm::ArrayRef<uint32_t> ranks) const;

private:
  void appendRing(llvm::ArrayRef<uint32_t> ranks, size_t numDims, bool isReversed, std::vector<uint32_t> &ring) const;

  std::vector<NetworkDim> dims;
};

} // namespace stage::astrasim

#endif // STAGE_ASTRASIM_NETWORK_H
