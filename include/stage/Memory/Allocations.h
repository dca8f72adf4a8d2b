//===- Allocations.h - each tensor of a step, in order ----------*- C++ -*-===//
//
// Problem: a peak says how much a rank holds at its worst moment. Who draws memory over a step, or asks what an
// allocator makes of it, needs each tensor of each microbatch, from its first node to its last.
//
//   class Sum : public AllocationListener { ... };      one stage, two microbatches
//   walkAllocations(program, stage, ..., sum);
//
//   allocate w, w.grad, w.state              what is static comes first, and stays
//   allocate x of F0, h of F0, y of F0;  free y of F0
//   allocate x of F1 ...
//
// Rule: at each node live bytes are those of the report, because both have tensors from the same simulation
// (UnitSimulator.h). What is received or loaded for a later unit is there from the unit on that posts or loads it; it
// counts as a buffer until its own unit begins. A tensor that another chunk takes over is another one from then on.
//
// Limits: tensors of the device only. Units of all microbatches are walked node by node, so that it takes as long as
// the step has nodes, unless the listener says when it is where it was before.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_ALLOCATIONS_H
#define STAGE_MEMORY_ALLOCATIONS_H

#include "stage/Memory/Memory.h"

namespace stage {

struct AllocatedTensor {
  const Value *value;   ///< Null: a resident.
  llvm::StringRef name; ///< Of a resident.
  MemoryClass kind;
  int64_t bytes;
  int iteration; ///< In which it is made; -1 outside of repeats, and of what is static.
};
/// `layers.mlp.h, iteration 3`.
std::string describe(const AllocatedTensor &tensor);

/// A node of a unit. Both are counted from 0, as the tasks of a class are (stage/Tasks/ClassTasks.h).
struct NodePlace {
  size_t unit;
  unsigned node;
  const Op *op; ///< Null: a message.
  int iteration;
};

class AllocationListener {
public:
  virtual ~AllocationListener() = default;
  /// Numbers of tensors that have been freed are given again.
  virtual void allocate(unsigned number, const AllocatedTensor &tensor) = 0;
  virtual void free(unsigned number) = 0;
  /// What was a buffer until its unit began is of this class from now on.
  virtual void reclassify(unsigned number, MemoryClass kind) = 0;
  /// All that the node writes has been allocated, and nothing that it reads has been freed.
  virtual void run(const NodePlace &place) = 0;
  /// Behind a unit, of a listener that need not hear what repeats: equal numbers for states from which equal units lead
  /// to equal states. `live`: the numbers of tensors, which need not be equal. Units between two equal states that run
  /// again are left out as often as they do.
  virtual std::optional<uint64_t> hashState(llvm::ArrayRef<unsigned>) { return std::nullopt; }
};

/// Of the rank of a stage with some coordinates (StageMemory::coordinates).
void walkAllocations(const Program &program, const StageProgram &stage, const SizeBinding &coordinates,
                     const RuntimeMemory *memory, DiagnosticEngine &diags, AllocationListener &listener);

} // namespace stage

#endif // STAGE_MEMORY_ALLOCATIONS_H
