//===- CopyModel.cpp - a graph of its own for each plan of a model --------===//
//
// Problem: passes change a graph in place, and each plan of a model begins with the same one.
//
// Algorithm: dims, operators and streams do not change and are shared. Ops are copied in one walk;
// a second one ties them to the copies of their operands. The uses of a value keep their
// order, as passes go through them.
//
//===----------------------------------------------------------------------===//
#include "CopyOps.h"

using namespace stage;

namespace stage {
/// Operands and uses stand in the copies where they stand in what is copied.
class GraphCopier {
public:
  static void copyUses(const OpCopies &copies) {
    for (auto [op, copy] : copies.getOps()) {
      copy->usePositions = op->usePositions;
      for (Value *operand : op->operands)
        copy->operands.push_back(copies.find(operand));
    }
    for (auto [value, copy] : copies.getValues())
      for (auto [user, operand] : value->uses)
        copy->uses.emplace_back(copies.find(user), operand);
  }
};
} // namespace stage

void Graph::copyModel(std::shared_ptr<const Graph> from) {
  assert(dims.empty() && getForward().empty() && "the graph has no model yet");
  dims = from->dims;
  passes = from->passes;
  streams = from->streams;
  for (const SlotLoad &load : from->mesh.getSlotLoads()) {
    mesh.addSlotLoad(load);
    if (!load.isEven())
      binding.bindTable(load.table, *from->binding.lookupTable(load.table));
  }
  defs.goOnFrom(from->defs);
  OpCopies copies;
  for (const Block &phase : from->getPhases())
    copies.add(phase, getPhase(phase.getPhase()));
  copies.tie();
  GraphCopier::copyUses(copies);
  model = std::move(from);
}
