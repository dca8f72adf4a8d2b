//===- Groups.cpp - numbers of process groups -----------------------------===//
#include "Groups.h"

using namespace stage;

GroupTable::GroupTable(const Program &program)
    : program(program), mesh(program.graph->mesh), pipelineAxis(program.graph->pipeline.axis) {
  for (const StageProgram &stage : program.stages) {
    auto visit = [&](const ProgramItem &item) {
      if (item.kind == ProgramItem::Kind::Op)
        use(*item.op, stage.stage);
      else if (item.kind == ProgramItem::Kind::Loop && item.end > item.begin)
        for (auto &op : *item.op->body)
          use(*op, stage.stage);
    };
    for (const UnitTemplate &unit : stage.templates)
      llvm::for_each(unit.items, visit);
    llvm::for_each(stage.step, visit);
  }
  uint64_t next = 1;
  for (Entry &entry : entries) {
    entry.first = next;
    uint64_t outside = mesh.getNumRanks() / mesh.getGroupSize(entry.kind.axes);
    if (!spansStages(entry) && pipelineAxis)
      outside = outside / mesh[*pipelineAxis].size * entry.usedBy.size();
    next += outside;
  }
}

bool GroupTable::spansStages(const Entry &entry) const {
  return pipelineAxis && (entry.kind.axes >> *pipelineAxis & 1);
}

GroupKind GroupTable::describe(const Op &op) const {
  GroupKind kind;
  kind.axes = toSet(op.axes);
  if (pipelineAxis && (kind.axes >> *pipelineAxis & 1))
    kind.stages.assign(op.stages.begin(), op.stages.end());
  return kind;
}

void GroupTable::use(const Op &op, unsigned stage) {
  if (!isCollective(op.kind))
    return;
  GroupKind kind = describe(op);
  if (mesh.getGroupSize(kind.axes) == 1)
    return;
  auto it = llvm::find_if(entries, [&](const Entry &entry) { return entry.kind == kind; });
  if (it == entries.end())
    it = entries.insert(entries.end(), Entry{kind});
  if (!llvm::is_contained(it->usedBy, stage)) {
    it->usedBy.push_back(stage);
    llvm::sort(it->usedBy);
  }
}

std::optional<unsigned> GroupTable::find(const Op &op) const {
  GroupKind kind = describe(op);
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
      coordinate = llvm::find(entry.usedBy, unsigned(coordinate)) - entry.usedBy.begin();
      size = entry.usedBy.size();
    }
    index = index * size + coordinate;
  }
  return index;
}

uint64_t GroupTable::getNumber(unsigned kind, int64_t rank) const {
  return entries[kind].first + indexOf(entries[kind], rank);
}

CommGroups GroupTable::getAll() const {
  CommGroups groups;
  int64_t ranks = mesh.getNumRanks();
  for (const Entry &entry : entries) {
    llvm::ArrayRef<unsigned> stages = entry.usedBy;
    if (spansStages(entry))
      stages = entry.kind.stages;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (pipelineAxis && !stages.empty() &&
          !llvm::is_contained(stages, unsigned(mesh.getCoordinate(rank, *pipelineAxis))))
        continue;
      groups[entry.first + indexOf(entry, rank)].push_back(uint32_t(rank));
    }
  }
  return groups;
}
