//===- UnitPrototype.cpp - units that differ in what they wait for --------===//
#include "UnitPrototype.h"

using namespace stage;

UnitPrototype::Explained UnitPrototype::explain(UnitRelation task, llvm::ArrayRef<UnitRelation> relations) {
  Explained explained{task, {}};
  for (uint32_t number = 0; number < relations.size(); ++number)
    if (relations[number].unit == task.unit &&
        (relations[number].task == UnitRelation::none || relations[number].task == task.task))
      explained.by.push_back(number);
  return explained;
}

std::optional<UnitRelation> UnitPrototype::Explained::find(llvm::ArrayRef<UnitRelation> relations) const {
  std::optional<UnitRelation> found;
  for (uint32_t number : by) {
    UnitRelation relation = relations[number];
    if (relation.task == UnitRelation::none)
      relation.task = task.task;
    if (found && !(*found == relation))
      return std::nullopt;
    found = relation;
  }
  return found;
}

UnitPrototype::UnitPrototype(const CompiledUnit &unit, llvm::ArrayRef<UnitRelation> relations,
                             llvm::ArrayRef<uint32_t> related, llvm::ArrayRef<LaneCheck> laneChecks)
    : unit(unit) {
  for (const CompiledUnit::Reference &reference : unit.references)
    references.push_back(reference.unit ? explain({related[*reference.unit], reference.offset}, relations)
                                        : Explained());
  std::vector<LaneCheck> each = laneChecks.vec();
  llvm::sort(each);
  each.erase(std::unique(each.begin(), each.end()), each.end());
  for (const LaneCheck &check : each) {
    Explained awaited = explain(check.awaited, relations);
    // At one place in units of one template tasks are on one lane.
    auto isOfUnit = [&](uint32_t number) { return relations[number].task == UnitRelation::none; };
    if (awaited.by.empty() || !llvm::all_of(awaited.by, isOfUnit))
      checks.push_back({std::move(awaited), check.lane, check.isOnLane});
  }
  for (uint32_t task : unit.waitsOutside) {
    std::optional<uint32_t> before;
    for (uint32_t place : unit.getAwaited(task))
      if (place < references.size()) {
        if (before && references[*before].task < references[place].task)
          ascending.emplace_back(*before, place);
        before = place;
      }
  }
  llvm::sort(ascending);
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
}

std::unique_ptr<CompiledUnit>
UnitPrototype::derive(llvm::ArrayRef<UnitRelation> relations, llvm::ArrayRef<uint32_t> related,
                      llvm::function_ref<bool(UnitRelation task, Lane lane)> isOnLane) const {
  std::vector<UnitRelation> found(references.size());
  for (auto [explained, task] : llvm::zip(references, found)) {
    if (explained.task.unit == UnitRelation::none)
      continue;
    std::optional<UnitRelation> there = explained.find(relations);
    if (!there)
      return nullptr;
    task = *there;
  }
  for (const Check &check : checks) {
    std::optional<UnitRelation> there = check.awaited.find(relations);
    if (!there || isOnLane(*there, check.lane) != check.isOnLane)
      return nullptr;
  }
  for (auto [before, after] : ascending)
    if (!(found[before] < found[after]))
      return nullptr;
  std::vector<UnitRelation> sorted = found;
  llvm::sort(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return nullptr;
  auto derived = std::make_unique<CompiledUnit>(unit);
  for (auto [reference, task] : llvm::zip(derived->references, found))
    if (reference.unit)
      reference = {unsigned(llvm::lower_bound(related, task.unit) - related.begin()), task.task};
  return derived;
}
