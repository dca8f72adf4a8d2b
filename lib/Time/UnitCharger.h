//===- UnitCharger.h - what units take beside each other -------*- C++ -*-===//
//
// Problem: tasks take longer beside others (stage/Time/Surcharges.h), and beside what a task runs follows from all
// units of a rank. What do the tasks of a thousand microbatches take, without looking at each of them?
//
//   units     F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 ...  B62 B63     1F1B
//   looked at  *  *  *  *  *  *  -  -  -  -  ...  *   *       F4 has F3's neighbours, and finds the same queues
//
// Rule: what a task runs beside is known from few units around its own.
//
//   Launches follow from a unit alone, but the host's part of a step is paid by the last unit that has a kernel. Links
//   are shared with tasks of the unit, of the one before and of the one behind. Taxes follow from the queues that the
//   units before have left over, from the units of what is in them, and from units behind whose tasks may be in a queue
//   while the unit computes. That may be if the first task of a unit that a queue takes waits for no compute task of
//   its own unit, and not for the last one of the unit before.
//
// Algorithm: launches and links are found first, of each unit among its neighbours; then taxes, from unit to unit, with
// what is left of the queues. What was found is kept by all that it depends on: the kinds of these units, which of them
// wait for which, and what is left, counted from the unit on. Classes of ranks have all of that in common. Units of a
// kind whose tasks take the same have their runs in common (CompiledUnit.h).
//
// In a steady state all of this comes again: what is left of a queue repeats, or shrinks until nothing is left. What is
// of units behind counts only as far as the compute of the unit uses it up.
//
// Limits: what is left grows for ever where no compute task waits for collectives that take longer than the compute of
// their unit. When to look at a few units around each has taken as long as to look at all of a class together would,
// that is done, at some 0.1 us for each task.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITCHARGER_H
#define STAGE_LIB_TIME_UNITCHARGER_H

#include "TaxQueues.h"
#include "UnitCompiler.h"

namespace stage {

/// What was found for units of some classes, by all that it depends on. Their units are of one store.
class ChargeStore {
public:
  /// Once all units are compiled. Both must outlive this.
  ChargeStore(const UnitStore &store, const Runtime &runtime);
  /// How many units were looked at, for links and for taxes.
  uint64_t getNumCharged() const { return shared.size() + taxed.size(); }

private:
  friend class UnitCharger;
  using Key = std::vector<uint64_t>;
  /// A unit but for taxes.
  struct Untaxed {
    std::vector<Surcharge> surcharges;
    std::vector<Ticks> taken;       ///< Prices with launches and shared links, without compute beside communication.
    Ticks compute = 0;              ///< Of what is taxed.
    UnitCharges *charges = nullptr; ///< If nothing is taxed.
  };
  /// What a unit does to a queue.
  struct QueueChange {
    size_t numOver = 0;                    ///< Entries that are over.
    std::optional<Ticks> rest;             ///< Of the first one that is not.
    int64_t numPassed = 0;                 ///< Tasks that are in the queue now, or were waited for before.
    std::vector<TaxQueue::Entry> appended; ///< Their numbers count these tasks.
  };
  struct Taxed {
    UnitCharges *charges;
    std::vector<QueueChange> changes;
  };
  /// What a unit of a kind has for queues.
  struct Queued {
    TaxedTasks own;                   ///< Its tasks, as far as they wait for each other.
    std::vector<uint32_t> numAwaited; ///< By task: compute tasks of the unit for which it waits, itself among them.
    /// By queue: references for which its first task waits; nothing if that waits for a compute task of the unit.
    std::vector<std::optional<std::vector<CompiledUnit::Reference>>> early;
  };
  bool mayShare() const;
  void findQueues();

  const UnitStore &store;
  const Runtime &runtime;
  bool hasNeighbours;                           ///< Units have to do with their neighbours.
  std::vector<TaxQueue> noQueues;               ///< With nothing in them.
  std::vector<std::optional<unsigned>> queueOf; ///< By facts of tasks.
  std::unordered_map<const CompiledUnit *, Queued> queuedOfKind;
  std::unordered_map<Key, std::unique_ptr<Untaxed>, UnitStore::KeyHash> shared;
  std::unordered_map<Key, std::unique_ptr<Taxed>, UnitStore::KeyHash> taxed;
};

class UnitCharger {
public:
  /// Of all units of a class. Both must outlive this.
  UnitCharger(UnitList &units, ChargeStore &known);

  /// Finds the charges of each unit.
  void charge();
  /// Units that were looked at together.
  uint64_t getNumTogether() const { return isTogether ? units.size() : 0; }

private:
  using Untaxed = ChargeStore::Untaxed;
  using QueueChange = ChargeStore::QueueChange;
  using Taxed = ChargeStore::Taxed;
  using Queued = ChargeStore::Queued;
  struct QueueOfClass {
    TaxQueue left;                ///< Before the unit that comes.
    std::vector<int64_t> counts;  ///< By unit: tasks of the units before it; one more than there are units.
    std::vector<size_t> arrivals; ///< By unit: no task of the unit comes before this unit computes.
    size_t numRelevant = 0;       ///< Entries with which the unit that comes has to do.
    size_t behind = 0;            ///< The first unit of which no task comes while the unit that comes computes.
  };

  bool isKernel(const CompiledUnit &unit, uint32_t task) const;
  void findLastKernel();
  TaxedTasks makeTaxedTasks(size_t first, size_t end, std::vector<uint32_t> &numAwaited) const;
  Queued findQueued(size_t number) const;
  static std::vector<CompiledUnit::Reference> listAwaited(const CompiledUnit &unit, uint32_t task);
  static std::optional<size_t> findTask(const CompiledUnit &unit, llvm::ArrayRef<uint32_t> related, uint32_t place,
                                        size_t first, llvm::ArrayRef<size_t> bases);
  TimedTasks makeTasks(size_t first, size_t end) const;
  void addUnits(size_t number, size_t first, size_t end);
  const Untaxed &findUntaxed(size_t number);
  template <typename T> std::vector<T> takeUnit(const std::vector<T> &ofTasks, size_t number, size_t first) const;
  Untaxed makeUntaxed(size_t number, size_t first, size_t end) const;
  size_t findArrival(size_t number, llvm::ArrayRef<CompiledUnit::Reference> references) const;
  void listQueues();
  std::pair<size_t, size_t> findWindow(size_t number);
  void addQueues(size_t number, size_t end);
  bool addTaxes();
  Taxed makeTaxed(size_t number, size_t first, size_t end) const;
  static void apply(const QueueChange &change, QueueOfClass &queue);
  void chargeTogether();

  UnitList &units;
  ChargeStore &known;
  const UnitStore &store;
  const Runtime &runtime;
  std::vector<const Queued *> queued;   ///< By unit.
  ChargeStore::Key key;                 ///< That is looked up.
  std::vector<const Untaxed *> untaxed; ///< By unit.
  std::vector<QueueOfClass> queues;
  size_t lastWithKernel = 0; ///< If the host has a part of the step; else behind all units.
  bool isTogether = false;   ///< All units were looked at.
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITCHARGER_H
