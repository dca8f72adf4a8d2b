//===- GroupPlace.h - where a group lies on a network ----------*- C++ -*-===//
//
// Problem: how much of a collective leaves a node depends on which ranks its group has.
//
//   nodes of 8 ranks; 0, 1, ..., 7          one node: all bytes stay inside
//                     0, 8, 16, 24          4 nodes, 1 member in each: all bytes leave, by one port of each node
//                     0, 1, ..., 31         4 nodes, 8 members in each: bytes leave by 8 ports of each node at once
//
// Rule: a level has blocks of so many ranks, aligned: ranks 0 to 7, 8 to 15, and so on. A group runs on the innermost
// level one block of which contains it. For each level inside of that one it is known how many blocks have members, and
// how many members the block with the fewest has.
//
// Limits: rank numbers are places. Ranks of a job fill one node after the other.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_GROUPPLACE_H
#define STAGE_MACHINE_GROUPPLACE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace stage {

class GroupPlace {
public:
  /// Of a group that the innermost level contains.
  GroupPlace(int64_t members) : members(members) {}
  /// Of ranks, ascending. `blockSizes`: ranks of a block of each level, from the inside out. One beyond the last level
  /// stands for a group that no level contains.
  GroupPlace(llvm::ArrayRef<int64_t> ranks, llvm::ArrayRef<int64_t> blockSizes);

  /// What a group has in the blocks of a level.
  struct Share {
    int64_t blocks = 1; ///< That have members.
    int64_t least = 1;  ///< Members of the block that has the fewest.
    bool operator==(const Share &other) const = default;
  };

  int64_t getNumMembers() const { return members; }
  /// The innermost level that contains the group.
  unsigned getLevel() const { return unsigned(inside.size()); }
  /// The group's share of the blocks of which a block of this level is made: those of the level inside of it, or single
  /// ranks. `level`: at most getLevel().
  Share getShare(unsigned level) const { return level ? inside[level - 1] : Share{members, 1}; }

  bool operator==(const GroupPlace &other) const = default;

private:
  int64_t members;
  llvm::SmallVector<Share, 2> inside; ///< By level, of those that do not contain the group.
};

} // namespace stage

#endif // STAGE_MACHINE_GROUPPLACE_H
