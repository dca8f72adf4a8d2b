//===- UnitSurcharges.cpp - surcharges, one unit after the other ----------===//
#include "UnitSurcharges.h"

using namespace stage;

/// Adds the tasks of a unit behind those of the list, and returns their places there. `lasts`: the last task of each
/// lane.
std::vector<size_t> UnitSurcharges::append(const Unit &unit, TimedTasks &tasks,
                                           std::vector<std::optional<size_t>> &lasts) const {
  llvm::ArrayRef<Item> own = items[unit.decodes];
  std::vector<std::optional<size_t>> before = lasts;
  std::vector<size_t> places(own.size());
  // Units are counted on; one that is absent has no number.
  unsigned number = tasks.size() ? tasks.get().back().unit : 0;
  std::optional<unsigned> recorded;
  for (size_t place = 0; place < own.size(); ++place) {
    if (!unit.isPresent[place])
      continue;
    const Item &item = own[place];
    if (recorded != item.task.unit && tasks.size())
      ++number;
    recorded = item.task.unit;
    places[place] = tasks.size();
    TimedTask &task = tasks.add();
    size_t endAwaited = task.endAwaited;
    task = item.task;
    task.endAwaited = endAwaited;
    task.unit = number;
    task.alone = unit.prices[place];
    for (unsigned earlier : item.earlier)
      if (unit.isPresent[earlier])
        tasks.wait(places[earlier]);
    for (unsigned lane : item.lanes)
      if (before[lane])
        tasks.wait(*before[lane]);
    if (item.task.kind != TaskKind::Receive)
      lasts[item.task.lane] = places[place];
  }
  return places;
}

std::vector<Ticks> UnitSurcharges::find(bool decodes, llvm::ArrayRef<Ticks> prices, Has has, const Runtime &runtime) {
  Unit unit{decodes, prices, {}};
  unsigned numLanes = 0;
  for (const std::vector<Item> &list : items)
    for (const Item &item : list)
      numLanes = std::max(numLanes, item.task.lane + 1);
  for (const Item &item : items[decodes])
    unit.isPresent.push_back(has(item.phase));
  TimedTasks tasks;
  std::vector<std::optional<size_t>> lasts(numLanes);
  if (before)
    append(*before, tasks, lasts);
  std::vector<size_t> places = append(unit, tasks, lasts);
  std::vector<Surcharge> surcharges = findSurcharges(tasks, numLanes, runtime);
  std::vector<Ticks> result(prices.size());
  for (size_t place = 0; place < places.size(); ++place)
    if (unit.isPresent[place]) {
      const Surcharge &more = surcharges[places[place]];
      result[place] = more.launch + std::min(more.beside, maxTicks - more.launch);
    }
  before = std::move(unit);
  return result;
}
