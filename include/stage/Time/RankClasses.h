//===- RankClasses.h - ranks that do the same at the same times -*- C++ -*-===//
//
// Problem: the time of a step must not cost more on 131,072 ranks than on 8. Which ranks do everything at the same
// times, and with whom do they communicate?
//
//   pp = 2, dp = 4, tp = 8                            2 classes: the stages
//   ... and `slow rank (dp = 3) by 2;`                4 classes: dp = 3 and the others, of each stage
//   cp = 2 with a causal mask in blocks               2 classes per stage: ranks have other FLOPs
//
// Rule: ranks are of one class if they agree on each axis in the *cell* of their coordinate. The cells of an axis are:
//
//   each coordinate     on the axis of the pipeline, and on axes along which the numbers of sizes differ
//   those that rules name, and all others as one
//                       on an axis of slow ranks, unless ranks send to a neighbour along it
//   every k-th coordinate
//                       where ranks send to a neighbour, and only some neighbours are in one block of the network,
//                       whose blocks have k coordinates each: a ring of 16 tensor ranks on nodes of 8 has 8 cells.
//                       Blocks that do not divide the axis make each coordinate a cell
//   all coordinates     else, if the ends of blocks look alike from them
//
// Ends of blocks look alike from two coordinates if they lie at the same places among the ranks with the one and among
// the ranks with the other. For example, domains of 64 ranks do not end with dp = 12 of tp = 8. But a stage has 96
// ranks, so no message between stages stays inside of a domain, and all data ranks are alike.
//
// Groups and messages follow axes, so all ranks of a class communicate with the same classes. The lowest rank therefore
// stands for its class, and communicates with such ranks alone.
//
// Why this keeps times: if two coordinates of a cell are exchanged on all ranks, or, where ranks send to neighbours
// along the axis, all coordinates are rotated by the distance of two of a cell, each rank still communicates with the
// same classes over the same levels.
//
// Limits: cells multiply, so that k rules `slow rank (dp = i, tp = j)` make up to (k + 1)^2 classes per stage. Where
// parts of a workload send each other tensors, each rank is a class.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_RANKCLASSES_H
#define STAGE_TIME_RANKCLASSES_H

#include "stage/IR/graph/Program.h"
#include "stage/Tasks/ClassTasks.h"

namespace stage {

/// The classes of a program's ranks, which are counted from 0 in the program.
class RankClasses {
public:
  /// `blockSizes`: ranks of a block of each level of the network on which groups lie in several ways. `apart`: each
  /// rank is a class.
  RankClasses(const Program &program, llvm::ArrayRef<int64_t> blockSizes, bool apart);

  unsigned getNumClasses() const { return representatives.size(); }
  /// The rank that stands for a class.
  int64_t getRepresentative(unsigned number) const { return representatives[number]; }
  int64_t getNumRanks(unsigned number) const;
  /// The class of a rank.
  unsigned find(int64_t rank) const;
  /// As makers of tasks know the class.
  RankClass describe(unsigned number) const;
  /// How many classes, and how many ranks, a group of this kind has.
  struct GroupSize {
    unsigned classes = 1;
    int64_t members = 1;
  };
  GroupSize getGroupSize(const GroupKind &kind) const;
  /// The members of a rank's group, counted over all parts.
  static std::vector<int64_t> listMembers(const Program &program, const GroupKind &kind, int64_t rank);
  std::vector<int64_t> listMembers(const GroupKind &kind, int64_t rank) const {
    return listMembers(program, kind, rank);
  }

private:
  const Program &program;
  const Mesh &mesh;
  std::vector<std::vector<unsigned>> cellOf; ///< Per axis, by coordinate.
  std::vector<unsigned> numCells;            ///< Per axis.
  AxisSet varying = 0;                       ///< Axes whose coordinates sizes name, also where all numbers are alike.
  std::vector<int64_t> representatives;      ///< By class.
};

} // namespace stage

#endif // STAGE_TIME_RANKCLASSES_H
