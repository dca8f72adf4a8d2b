//===- SimulatedAllocator.h - a step by an allocator ------------*- C++ -*-===//
//
// Problem: a plan whose tensors fit may still not run, because the allocator rounds sizes and cuts segments into pieces
// that nothing fits into.
//
//   peak of the tensors 69.8 GiB          allocated 69.9 GiB, reserved 74.1 GiB, of 79.6 GiB
//
// Algorithm: all tensors of a step go through the allocator in the order of the program (Allocations.h), those of
// static memory first.
//
// Limits: one step, so that segments which only a second step would need are missing. Of one stage.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_SIMULATEDALLOCATOR_H
#define STAGE_MEMORY_SIMULATEDALLOCATOR_H

#include "stage/Machine/Runtime.h"
#include "stage/Memory/Memory.h"

namespace stage {

/// `capacity`: bytes that a rank may use; 0: not known.
AllocatorUse simulateAllocator(const Program &program, const StageMemory &stage, const RuntimeMemory *memory,
                               const AllocatorRules &rules, int64_t capacity, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_MEMORY_SIMULATEDALLOCATOR_H
