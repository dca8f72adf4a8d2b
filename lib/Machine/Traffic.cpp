//===- Traffic.cpp - what a collective moves ------------------------------===//
#include "stage/Machine/Traffic.h"
#include "stage/IR/graph/Graph.h"

using namespace stage;

CollectiveKind stage::getCollectiveKind(OpKind kind) {
  switch (kind) {
  case OpKind::AllGather:
    return CollectiveKind::AllGather;
  case OpKind::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case OpKind::AllToAll:
    return CollectiveKind::AllToAll;
  case OpKind::AllReduce:
    return CollectiveKind::AllReduce;
  case OpKind::Permute:
    return CollectiveKind::Permute;
  default:
    llvm_unreachable("no communication");
  }
}

Traffic stage::getTraffic(CollectiveKind kind, int64_t members) {
  int64_t others = members - 1;
  switch (kind) {
  case CollectiveKind::AllGather:
    return {others, 1, others};
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return {others, members, others};
  case CollectiveKind::AllReduce:
    return {2 * others, members, 2 * others};
  case CollectiveKind::Permute:
    return {1, 1, 1};
  case CollectiveKind::Broadcast:
    return {1, 1, others};
  case CollectiveKind::Barrier:
    return {0, 1, 2 * others};
  }
  llvm_unreachable("no other kinds");
}

int64_t stage::getTrafficOfLargeGroup(CollectiveKind kind) { return kind == CollectiveKind::AllReduce ? 2 : 1; }
