//===- StaticMemory.h - what a stage holds all the time ---------*- C++ -*-===//
//
// Problem: most memory of a rank is there before its first unit and stays. Who sums memory up, and who lists each
// allocation, must count the same.
//
//   params 4.19 GiB, gradients 8.38 GiB, optimizer 3.14 GiB, residents 0.45 GiB
//
// Algorithm: parameters, buffers of the model and caches are those that ops of the stage read; a gradient's buffer
// belongs to a parameter and a sharding; states of an update are sharded as the gradient; residents are
// RuntimeMemory's.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_STATICMEMORY_H
#define STAGE_MEMORY_STATICMEMORY_H

#include "stage/Memory/UnitSimulator.h"

namespace stage {

struct StaticValue : LiveValue {
  MemorySpace space = MemorySpace::Device;
};

/// `bytes` are those of the ranks that are asked for.
std::vector<StaticValue> listStatic(const Program &program, const StageProgram &stage, LocalBytes &bytes,
                                    const RuntimeMemory *memory);

} // namespace stage

#endif // STAGE_MEMORY_STATICMEMORY_H
