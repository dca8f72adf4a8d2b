//===- RankSlots.h - numbers that each rank of a class has its own of -*- C++ -*-===//
#ifndef STAGE_TASKS_RANKSLOTS_H
#define STAGE_TASKS_RANKSLOTS_H

#include "stage/Tasks/ClassTasks.h"

namespace stage {

/// The value of a slot on a rank of the class; not of sizes. The rank is counted within the program. Ranks and groups
/// that this returns are counted over all parts.
uint64_t resolve(const Program &program, const GroupTable &groups, const RankSlot &slot, int64_t rank);

} // namespace stage

#endif // STAGE_TASKS_RANKSLOTS_H
