//===- RankSlots.h - numbers that each rank of a class has its own of -*- C++ -*-===//
#ifndef STAGE_TASKS_RANKSLOTS_H
#define STAGE_TASKS_RANKSLOTS_H

#include "stage/Tasks/ClassTasks.h"

namespace stage {

/// What a slot, which is no size, is on a rank. The rank is counted from the first of the program, and of its stage;
/// ranks and groups that this returns are counted in all parts together.
uint64_t resolve(const Program &program, const GroupTable &groups, const RankSlot &slot, int64_t rank);

} // namespace stage

#endif // STAGE_TASKS_RANKSLOTS_H
