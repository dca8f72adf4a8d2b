//===- RankSlots.cpp - numbers that each rank of a class has its own of ---===//
#include "stage/Tasks/RankSlots.h"

using namespace stage;

uint64_t stage::resolve(const Program &program, const GroupTable &groups, const RankSlot &slot, int64_t rank) {
  const Mesh &mesh = program.graph->mesh;
  int64_t first = program.firstRank;
  switch (slot.kind) {
  case RankSlot::Kind::Group:
    return groups.getNumber(slot.groupKind, rank);
  case RankSlot::Kind::Stage: {
    AxisId axis = *program.graph->pipeline.axis;
    return first + rank + (slot.stage - mesh.getCoordinate(rank, axis)) * mesh.getStride(axis);
  }
  case RankSlot::Kind::Neighbour: {
    int64_t coordinate = mesh.getCoordinate(rank, slot.axis);
    return first + rank + ((coordinate + slot.shift) % mesh[slot.axis].size - coordinate) * mesh.getStride(slot.axis);
  }
  case RankSlot::Kind::Sender:
    return slot.exchange->from->firstRank + slot.exchange->getSenders(rank)[slot.shift].rank;
  case RankSlot::Kind::Receiver:
    return slot.exchange->to->firstRank + slot.exchange->getReceivers(rank, slot.batch)[slot.shift].rank;
  case RankSlot::Kind::Tag:
    return slot.least + slot.exchange->getSenders(rank)[slot.shift].batch;
  case RankSlot::Kind::Size:
    break;
  }
  llvm_unreachable("a size is evaluated");
}
