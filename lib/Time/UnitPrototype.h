//===- UnitPrototype.h - units that differ in what they wait for -*- C++ -*-===//
//
// Problem: units of one template differ in kind (UnitCompiler.h), because the units around them do. Each kind would
// have to be made, task by task, though its tasks are the same and wait for each other in the same way.
//
//   F4    after F3    task 0 waits for F3's last task
//   F5    after B0    task 0 waits for B0's last task; the rest is the same
//
// Rule: what a task waits for outside of its unit is told by a *relation* of the unit: it is a task that a relation
// leads to, or stands at a place in a unit that one leads to. Of units whose relations are of one *form*, the same ones
// are there, those to units lead to units of the same templates, and the same relation tells what a task waits for.
//
// Algorithm: for each reference of a unit that was made, the relations are listed that explain it. Of another unit of
// this form they are looked up. The other unit is made in full, as if no prototype were there, where
//
//   - relations that explain one reference lead to several tasks there, as nobody knows which one tells it;
//   - two references lead to one task, or to tasks in another order: waits are sorted, and none is there twice;
//   - a task waits for a task on its own lane in one unit and not in the other (UnitCompiler::refer).
//
// Limits: a relation that leads to the task of another one by chance costs a unit more that is made, not a fault.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITPROTOTYPE_H
#define STAGE_LIB_TIME_UNITPROTOTYPE_H

#include "CompiledUnit.h"

namespace stage {

/// Where a relation of a unit leads: to a task of an earlier unit, or to all of it.
struct UnitRelation {
  static constexpr uint32_t none = ~uint32_t(0);
  uint32_t unit = none; ///< none: to nothing.
  uint32_t task = none; ///< none: to the unit.
  bool operator==(const UnitRelation &other) const { return unit == other.unit && task == other.task; }
  bool operator<(const UnitRelation &other) const { return std::pair(unit, task) < std::pair(other.unit, other.task); }
};

class UnitPrototype {
public:
  using Lane = std::pair<uint64_t, unsigned>;
  /// A task waits for one of its own lane in its unit, and was to wait for this one, too.
  struct LaneCheck {
    UnitRelation awaited;
    Lane lane;
    bool isOnLane; ///< Then it does not.
    bool operator==(const LaneCheck &other) const { return awaited == other.awaited && lane == other.lane; }
    bool operator<(const LaneCheck &other) const {
      return std::tie(awaited, lane) < std::tie(other.awaited, other.lane);
    }
  };

  /// `relations`, `related`: of the unit, which must outlive this. `checks`: whatever was asked while it was made.
  UnitPrototype(const CompiledUnit &unit, llvm::ArrayRef<UnitRelation> relations, llvm::ArrayRef<uint32_t> related,
                llvm::ArrayRef<LaneCheck> checks);

  /// The unit with these relations, which are of the same form, and with these related units, ascending. Null: it must
  /// be made.
  std::unique_ptr<CompiledUnit> derive(llvm::ArrayRef<UnitRelation> relations, llvm::ArrayRef<uint32_t> related,
                                       llvm::function_ref<bool(UnitRelation task, Lane lane)> isOnLane) const;

private:
  /// A task outside of the unit, and which relations explain that it is waited for.
  struct Explained {
    UnitRelation task;
    llvm::SmallVector<uint32_t, 4> by;
    std::optional<UnitRelation> find(llvm::ArrayRef<UnitRelation> relations) const;
  };
  struct Check {
    Explained awaited;
    Lane lane;
    bool isOnLane;
  };
  static Explained explain(UnitRelation task, llvm::ArrayRef<UnitRelation> relations);

  const CompiledUnit &unit;
  std::vector<Explained> references; ///< By number; that of the beginning of the step has no explanation.
  std::vector<Check> checks;
  std::vector<std::pair<uint32_t, uint32_t>> ascending; ///< References that some task waits for in this order.
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITPROTOTYPE_H
