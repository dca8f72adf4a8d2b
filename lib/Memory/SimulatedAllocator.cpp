//===- SimulatedAllocator.cpp - a step by an allocator --------------------===//
#include "stage/Memory/SimulatedAllocator.h"
#include "stage/Memory/Allocations.h"
#include "stage/Memory/CachingAllocator.h"
#include "llvm/ADT/Hashing.h"

using namespace stage;

namespace {
class Simulation : public AllocationListener {
public:
  Simulation(const AllocatorRules &rules, int64_t capacity) : allocator(rules, capacity) {}

  CachingAllocator allocator;

private:
  void allocate(unsigned number, const AllocatedTensor &tensor) override {
    if (number >= addresses.size())
      addresses.resize(number + 1);
    addresses[number] = allocator.allocate(tensor.bytes);
  }
  void free(unsigned number) override { allocator.free(addresses[number]); }
  void reclassify(unsigned, MemoryClass) override {}
  void run(const NodePlace &) override {}
  std::optional<uint64_t> hashState(llvm::ArrayRef<unsigned> live) override {
    llvm::hash_code hash = 0;
    for (unsigned number : live)
      hash = llvm::hash_combine(hash, addresses[number]);
    for (const auto &[address, block] : allocator.getBlocks())
      hash = llvm::hash_combine(hash, address, block.bytes, block.requested != 0);
    return uint64_t(hash);
  }

  std::vector<int64_t> addresses;
};
} // namespace

AllocatorUse stage::simulateAllocator(const Program &program, const StageMemory &stage, const RuntimeMemory *memory,
                                      const AllocatorRules &rules, int64_t capacity, DiagnosticEngine &diags) {
  Simulation simulation(rules, capacity);
  walkAllocations(program, program.stages[stage.stage], stage.coordinates, memory, diags, simulation);
  const CachingAllocator &allocator = simulation.allocator;
  return {.stage = stage.stage,
          .allocated = allocator.getPeakAllocated(),
          .reserved = allocator.getPeakReserved(),
          .stalls = allocator.getNumStalls(),
          .fits = !allocator.exceedsCapacity()};
}
