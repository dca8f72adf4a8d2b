//===- UnitSurcharges.h - surcharges, one unit after the other -*- C++ -*-===//
//
// Problem: a server knows a unit once the one before has ended, and surcharges follow from all tasks of a rank
// (stage/Time/Surcharges.h).
//
//   units of a rank      i0   i1   i2          i3 is not known yet
//   looked at for i2          i1   i2          of which i2 takes its surcharges
//
// Algorithm: the tasks of a unit of each kind are kept once. For each unit a list is made of the tasks of the unit
// before and of its own, with the prices that these have now, and the rules are applied to the list.
//
// Limits: what the next unit does beside the end of this one is left out, as is what is left in queues from units
// before the unit before.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITSURCHARGES_H
#define STAGE_LIB_TIME_UNITSURCHARGES_H

#include "stage/Machine/Runtime.h"
#include "stage/Schedule/Unit.h"
#include "stage/Time/Surcharges.h"

namespace stage {

/// Of a class.
class UnitSurcharges {
public:
  /// A task of a unit, in the order of the rank. Its price is not known yet.
  struct Item {
    TimedTask task;
    PhaseKind phase;               ///< Copies stand in front of a unit.
    std::vector<unsigned> earlier; ///< Those of the unit for which it waits, by their places.
    std::vector<unsigned> lanes;   ///< Of tasks of earlier units for which it waits.
  };
  /// Whether a unit has tasks of a phase.
  using Has = llvm::function_ref<bool(PhaseKind)>;

  void add(bool decodes, Item item) { items[decodes].push_back(std::move(item)); }
  llvm::ArrayRef<Item> getItems(bool decodes) const { return items[decodes]; }

  /// What tasks of the next unit take beyond their prices, by their places. `prices`: likewise, of a unit of this kind.
  std::vector<Ticks> find(bool decodes, llvm::ArrayRef<Ticks> prices, Has has, const Runtime &runtime);
  /// No unit has run.
  void forget() { before.reset(); }

private:
  /// A unit that has run.
  struct Unit {
    bool decodes;
    std::vector<Ticks> prices;
    std::vector<bool> isPresent; ///< By place.
  };
  std::vector<size_t> append(const Unit &unit, TimedTasks &tasks, std::vector<std::optional<size_t>> &lasts) const;

  std::vector<Item> items[2];
  std::optional<Unit> before;
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITSURCHARGES_H
