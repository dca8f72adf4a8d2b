//===- UnitPattern.h - units that differ in what they wait for -*- C++ -*-===//
//
// Problem: the units of a template have the same tasks, and wait for other tasks of earlier units. To make the tasks of
// each of them anew is most of what the time of a step costs.
//
//   F4    after F3    task 0 waits for F3's last task
//   F5    after B0    task 0 waits for B0's last task; the rest is the same
//   F0    first       task 0 waits for nothing; the rest is the same
//
// Rule: what a task waits for outside of its unit is where a *relation* of the unit leads (UnitCompiler.h): a task, or
// a place in another unit. A pattern says which relation, not which task:
//
//   F     task 0 waits for where relation 0, the end of the compute stream, leads
//
// Algorithm: tasks are made with names in place of the ends of streams (ClassTasks::makeRounds); a place in another
// unit is of each relation that leads to this unit. Of another unit, relations are put in place of their names. What
// leads nowhere is left out. So is what ran on the task's own lane, where a task of its own unit is behind it. Waits
// are sorted, and none is there twice, as if they had been made.
//
// Limits: where several relations lead to one unit, and in another unit to different ones, nobody knows which one tells
// the place: the other unit is made, too.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITPATTERN_H
#define STAGE_LIB_TIME_UNITPATTERN_H

#include "CompiledUnit.h"

namespace stage {

/// Where a relation of a unit leads: to a task of an earlier unit, or to all of it.
struct UnitRelation {
  static constexpr uint32_t none = ~uint32_t(0);
  static constexpr uint32_t own = 2; ///< Of `part`.
  uint32_t unit = none;              ///< none: to nothing.
  uint32_t task = none;              ///< none: to the unit.
  uint32_t part = 0; ///< Of a pair, to which of its two units; `own`: to the other unit of one's own pair.
  bool operator==(const UnitRelation &other) const {
    return unit == other.unit && task == other.task && part == other.part;
  }
  bool operator<(const UnitRelation &other) const { return std::pair(unit, task) < std::pair(other.unit, other.task); }
};

class UnitPattern {
public:
  struct PatternTask {
    uint32_t facts = 0;
    TaskKind kind = TaskKind::Compute;
    unsigned connection = 0; ///< Meeting, or channel of a permute.
    uint64_t tag = 0;        ///< Of a permute.
    unsigned part = 0;       ///< Of a pair, of which unit it is.
    bool isPermute = false;
    /// It waits for a task of its own unit that takes time on its lane: what an earlier unit has run there is over.
    bool isBehindOwn = false;
    uint32_t dataEnd = 0, end = 0; ///< In `awaited`: behind the last of its data, and of all.
  };
  /// `source`: `own`: a task of the unit. Else in `sources`: the task to which it leads, or one of its unit.
  struct Awaited {
    static constexpr uint32_t own = ~uint32_t(0);
    uint32_t source, task;
  };
  /// The relations that lead to one place.
  using Source = llvm::SmallVector<uint32_t, 2>;

  std::vector<PatternTask> tasks;
  std::vector<Awaited> awaited;
  std::vector<Source> sources;
  ClassTasks::Chains chains; ///< Where streams end, from the first task; nothing if the unit does not change them.
  std::optional<uint64_t> workBeforeLoop; ///< Likewise.
  bool entersRepeatFirst = false;         ///< Computation before that is of earlier units.
  uint64_t numPermutes = 0;
  /// Units whose references, but for where they lead, differ.
  std::vector<const CompiledUnit *> instances;

  uint32_t getFirstAwaited(size_t task) const { return task ? tasks[task - 1].end : 0; }
  /// Whether it is on the lane of a task of the pattern.
  using LaneCheck = llvm::function_ref<bool(UnitRelation other, const PatternTask &task)>;
  /// A unit with these relations, and with these related units, ascending: its references, and what its tasks wait for,
  /// of tasks of the unit behind all references. False: it must be made.
  bool refer(llvm::ArrayRef<UnitRelation> relations, llvm::ArrayRef<uint32_t> related, LaneCheck isOnLane,
             CompiledUnit &unit) const;

private:
  std::optional<UnitRelation> find(Awaited place, llvm::ArrayRef<UnitRelation> relations, bool &isKnown) const;
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITPATTERN_H
