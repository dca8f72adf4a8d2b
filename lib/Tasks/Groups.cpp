//===- Groups.cpp - numbers of process groups -----------------------------===//
#include "stage/Tasks/Groups.h"

using namespace stage;

GroupTable::GroupTable(const Program &program, uint64_t first)
    : program(program), mesh(program.graph->mesh), pipelineAxis(program.graph->pipeline.axis) {
  for (const StageProgram &stage : program.stages)
    forEachOp(stage, [&](const Op &op) { use(op, stage.stage); });
  for (const StageProgram &stage : program.stages)
    for (const UnitTemplate &unit : stage.templates)
      for (const ProgramItem &item : unit.items)
        mostValues = std::max<uint64_t>(mostValues, item.values.size());
  end = first;
  for (Entry &entry : entries) {
    entry.first = end;
    end += getNumGroups(entry);
  }
}

uint64_t GroupTable::getNumGroups(const Entry &entry) const {
  uint64_t groups = mesh.getNumRanks() / mesh.getGroupSize(entry.kind.axes);
  if (!spansStages(entry) && pipelineAxis)
    groups = groups / mesh[*pipelineAxis].size * entry.usedBy.size();
  return groups;
}

bool GroupTable::spansStages(const Entry &entry) const {
  return pipelineAxis && (entry.kind.axes >> *pipelineAxis & 1);
}

GroupKind GroupTable::describe(const Op &op, unsigned stage) const {
  GroupKind kind;
  kind.axes = toSet(op.axes);
  if (pipelineAxis && (kind.axes >> *pipelineAxis & 1))
    kind.stages.append(op.getGroupStages(stage).begin(), op.getGroupStages(stage).end());
  return kind;
}

void GroupTable::use(const Op &op, unsigned stage) {
  if (!isCollective(op.kind))
    return;
  GroupKind kind = describe(op, stage);
  if (mesh.getGroupSize(kind.axes) == 1)
    return;
  auto it = llvm::find_if(entries, [&](const Entry &entry) { return entry.kind == kind; });
  if (it == entries.end())
    it = entries.insert(entries.end(), Entry{kind});
  if (it->usedBy.empty() || it->usedBy.back() != stage)
    it->usedBy.push_back(stage); // stages come in order
}

std::optional<unsigned> GroupTable::find(const Op &op, unsigned stage) const {
  GroupKind kind = describe(op, stage);
  for (unsigned i = 0; i < entries.size(); ++i)
    if (entries[i].kind == kind)
      return i;
  return std::nullopt;
}

/// Groups of a kind are numbered by the coordinates that their members share, the stage counted among those that
/// use the kind.
uint64_t GroupTable::indexOf(const Entry &entry, int64_t rank) const {
  uint64_t index = 0;
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis) {
    if (entry.kind.axes >> axis & 1)
      continue;
    uint64_t coordinate = mesh.getCoordinate(rank, axis), size = mesh[axis].size;
    if (axis == pipelineAxis) {
      coordinate = llvm::lower_bound(entry.usedBy, unsigned(coordinate)) - entry.usedBy.begin();
      size = entry.usedBy.size();
    }
    index = index * size + coordinate;
  }
  return index;
}

uint64_t GroupTable::getNumber(unsigned kind, int64_t rank) const {
  return entries[kind].first + indexOf(entries[kind], rank);
}

void GroupTable::addAll(CommGroups &groups) const {
  int64_t ranks = mesh.getNumRanks();
  for (const Entry &entry : entries) {
    llvm::ArrayRef<unsigned> stages = entry.usedBy;
    if (spansStages(entry))
      stages = entry.kind.stages;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (pipelineAxis && !stages.empty() &&
          !llvm::is_contained(stages, unsigned(mesh.getCoordinate(rank, *pipelineAxis))))
        continue;
      groups[entry.first + indexOf(entry, rank)].push_back(uint32_t(program.firstRank + rank));
    }
  }
}

uint64_t MixedRadix::getCount() const {
  uint64_t count = 1;
  for (const Digit &digit : digits)
    count *= digit.fixed ? 1 : digit.radix;
  return count;
}

uint64_t MixedRadix::countBelow(uint64_t limit) const {
  uint64_t range = 1;
  for (const Digit &digit : digits)
    range *= digit.radix;
  if (limit >= range)
    return getCount();
  // As numbers are compared: all that are smaller in some digit and equal in the ones before.
  uint64_t below = 0, rest = getCount();
  for (const Digit &digit : digits) {
    range /= digit.radix;
    rest /= digit.fixed ? 1 : digit.radix;
    uint64_t at = limit / range % digit.radix;
    below += rest * (digit.fixed ? *digit.fixed < at : at);
    if (digit.fixed && *digit.fixed != at)
      break;
  }
  return below;
}

MixedRadix GroupTable::getNumbers(unsigned kind, llvm::ArrayRef<std::optional<int64_t>> fixed) const {
  const Entry &entry = entries[kind];
  MixedRadix numbers;
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis) {
    if (entry.kind.axes >> axis & 1)
      continue;
    if (axis == pipelineAxis)
      numbers.add(entry.usedBy.size(), llvm::lower_bound(entry.usedBy, unsigned(*fixed[axis])) - entry.usedBy.begin());
    else
      numbers.add(mesh[axis].size, fixed[axis] ? std::optional<uint64_t>(*fixed[axis]) : std::nullopt);
  }
  return numbers;
}

/// The decimal digits of all values plus `first`.
static __int128 countDigits(const MixedRadix &values, uint64_t first) {
  __int128 digits = values.getCount();
  for (uint64_t power = 10; power; power = power > UINT64_MAX / 10 ? 0 : power * 10) {
    uint64_t shorter = power > first ? values.countBelow(power - first) : 0;
    if (shorter == values.getCount())
      break;
    digits += values.getCount() - shorter;
  }
  return digits;
}

/// What writeCommGroups writes: `{`, `\n  "1": [0, 1]` with commas in between, `\n}\n`.
__int128 GroupTable::getJsonSize() const {
  if (entries.empty())
    return llvm::StringRef("{}\n").size();
  __int128 size = llvm::StringRef("{\n}\n").size(), groups = 0;
  for (const Entry &entry : entries) {
    __int128 count = getNumGroups(entry);
    groups += count;
    MixedRadix keys;
    keys.add(count);
    size += count * llvm::StringRef("\n  \"\": []").size() + countDigits(keys, entry.first);
    // Each rank that takes part is in one group.
    llvm::ArrayRef<unsigned> stages = entry.usedBy;
    if (spansStages(entry))
      stages = entry.kind.stages;
    __int128 members = 0;
    auto addRanks = [&](std::optional<uint64_t> stage) {
      MixedRadix ranks;
      for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
        ranks.add(mesh[axis].size, axis == pipelineAxis ? stage : std::nullopt);
      members += ranks.getCount();
      size += countDigits(ranks, 0);
    };
    if (!pipelineAxis || stages.empty())
      addRanks(std::nullopt);
    else
      for (unsigned stage : stages)
        addRanks(stage);
    size += (members - count) * llvm::StringRef(", ").size();
  }
  return size + groups - 1;
}
