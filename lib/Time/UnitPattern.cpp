//===- UnitPattern.cpp - units that differ in what they wait for ----------===//
#include "UnitPattern.h"

using namespace stage;

/// Where it leads; nothing: to nothing.
std::optional<UnitRelation> UnitPattern::find(Awaited place, llvm::ArrayRef<UnitRelation> relations,
                                              bool &isKnown) const {
  const Source &source = sources[place.source];
  UnitRelation found = relations[source.front()];
  for (uint32_t number : source)
    isKnown &= relations[number] == found;
  if (found.unit == UnitRelation::none)
    return std::nullopt;
  if (found.task == UnitRelation::none)
    found.task = place.task;
  found.part = 0;
  return found;
}

bool UnitPattern::refer(llvm::ArrayRef<UnitRelation> relations, llvm::ArrayRef<uint32_t> related, LaneCheck isOnLane,
                        CompiledUnit &unit) const {
  constexpr uint32_t beginning = UnitRelation::none;
  llvm::SmallDenseMap<uint64_t, uint32_t, 32> numbers; // of references
  bool isKnown = true;
  // Of tasks of the unit, places count from here while references are not all known.
  constexpr uint32_t reference = uint32_t(1) << 31;
  auto refer = [&](UnitRelation task) {
    auto [number, isNew] = numbers.try_emplace(uint64_t(task.unit) << 32 | task.task, unit.references.size());
    if (isNew && task.unit == beginning)
      unit.references.push_back({std::nullopt, 0});
    else if (isNew)
      unit.references.push_back({unsigned(llvm::lower_bound(related, task.unit) - related.begin()), task.task});
    unit.awaited.push_back(reference + number->second);
  };
  unit.awaited.reserve(awaited.size());
  unit.ends.reserve(tasks.size());
  llvm::SmallVector<UnitRelation, 8> before, listed; // tasks of earlier units: of a list, and of lists before
  for (uint32_t number = 0; number < tasks.size(); ++number) {
    const PatternTask &task = tasks[number];
    size_t first = unit.awaited.size();
    bool waitsOutside = task.kind == TaskKind::Receive;
    listed.clear();
    for (auto [begin, end] : {std::pair(getFirstAwaited(number), task.dataEnd), std::pair(task.dataEnd, task.end)}) {
      before.clear();
      for (uint32_t i = begin; i < end; ++i)
        if (awaited[i].source != Awaited::own)
          if (std::optional<UnitRelation> found = find(awaited[i], relations, isKnown))
            if (!llvm::is_contained(before, *found) && !llvm::is_contained(listed, *found))
              before.insert(llvm::lower_bound(before, *found), *found);
      listed.append(before.begin(), before.end());
      for (UnitRelation other : before)
        if (!task.isBehindOwn || !isOnLane(other, task)) {
          waitsOutside = true;
          refer(other);
        }
      for (uint32_t i = begin; i < end; ++i)
        if (awaited[i].source == Awaited::own)
          unit.awaited.push_back(awaited[i].task);
    }
    if (unit.awaited.size() == first && listed.empty()) {
      waitsOutside = true;
      refer({beginning, 0});
    }
    if (waitsOutside)
      unit.waitsOutside.push_back(number);
    unit.ends.push_back(uint32_t(unit.awaited.size()));
  }
  for (uint32_t &place : unit.awaited)
    place = place >= reference ? place - reference : place + uint32_t(unit.references.size());
  return isKnown;
}
