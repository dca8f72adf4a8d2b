//===- Groups.h - numbers of process groups --------------------*- C++ -*-===//
//
// A collective names axes; each set of ranks that differ on these axes only is a
// group. Groups are numbered from 1: kinds of groups (axes, and stages if restricted)
// in the order in which the program first uses them, groups of a kind in the order of
// their lowest rank.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_GROUPS_H
#define STAGE_TASKS_GROUPS_H

#include "stage/IR/graph/Program.h"
#include "stage/Tasks/CommGroups.h"

namespace stage {

/// A number whose digits have radices of their own, most significant first; a digit may be fixed.
class MixedRadix {
public:
  void add(uint64_t radix, std::optional<uint64_t> fixed = std::nullopt) { digits.push_back({radix, fixed}); }
  /// How many values the free digits give.
  uint64_t getCount() const;
  /// How many of these are below a limit.
  uint64_t countBelow(uint64_t limit) const;

private:
  struct Digit {
    uint64_t radix;
    std::optional<uint64_t> fixed;
  };
  llvm::SmallVector<Digit, 6> digits;
};

/// Groups over the same axes.
struct GroupKind {
  AxisSet axes = 0;
  /// Coordinates of the pipeline axis that take part; empty: all of them.
  llvm::SmallVector<unsigned, 2> stages;
  bool operator==(const GroupKind &other) const { return axes == other.axes && stages == other.stages; }
};

class GroupTable {
public:
  /// The groups of a program; of a part of a workload, numbered from `first`.
  explicit GroupTable(const Program &program, uint64_t first = 1);

  unsigned getNumKinds() const { return entries.size(); }
  const GroupKind &getKind(unsigned kind) const { return entries[kind].kind; }
  /// The kind of a collective's groups on a stage; nothing if they have one member.
  std::optional<unsigned> find(const Op &op, unsigned stage) const;
  /// The number of the group of a kind that a rank is in, which is counted from the first of its part. It must take
  /// part in the kind.
  uint64_t getNumber(unsigned kind, int64_t rank) const;
  /// The number of a kind's first group.
  uint64_t getFirst(unsigned kind) const { return entries[kind].first; }
  /// The numbers, counted from the first, of the groups of a kind that ranks are in of which some coordinates are
  /// `fixed` (absent ones are not), the pipeline's among them. Each number stands for as many ranks.
  MixedRadix getNumbers(unsigned kind, llvm::ArrayRef<std::optional<int64_t>> fixed) const;
  /// The most values of a message between two stages, by which sender and receiver count tags.
  uint64_t getMostValues() const { return mostValues; }
  /// The number behind that of the last group.
  uint64_t getEnd() const { return end; }
  /// Adds all groups, for comm_group.json.
  void addAll(CommGroups &groups) const;
  /// Bytes of comm_group.json.
  __int128 getJsonSize() const;

private:
  struct Entry {
    GroupKind kind;
    uint64_t first = 0; ///< Number of its first group.
    /// Stages on which some rank uses it, ascending; a kind that spans the pipeline axis has them all in one group.
    llvm::SmallVector<unsigned, 4> usedBy;
  };
  GroupKind describe(const Op &op, unsigned stage) const;
  void use(const Op &op, unsigned stage);
  uint64_t indexOf(const Entry &entry, int64_t rank) const;
  bool spansStages(const Entry &entry) const;
  uint64_t getNumGroups(const Entry &entry) const;

  const Program &program;
  const Mesh &mesh;
  std::optional<AxisId> pipelineAxis;
  std::vector<Entry> entries;
  uint64_t end;
  uint64_t mostValues = 1;
};

} // namespace stage

#endif // STAGE_TASKS_GROUPS_H
