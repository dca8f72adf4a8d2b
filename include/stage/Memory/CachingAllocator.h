//===- CachingAllocator.h - memory in segments that are kept ----*- C++ -*-===//
//
// Problem: software asks the device for large segments, cuts tensors out of them, and keeps what is freed for later
// tensors. So it reserves more than its tensors need: sizes are rounded, and free parts may be too short for what comes
// next.
//
//   CachingAllocator allocator(rules);          // segments of 20 MiB for tensors of 1 to 10 MiB
//   auto a = allocator.allocate(6 << 20);       // a segment; 14 MiB of it are free
//   auto b = allocator.allocate(9 << 20);       // behind a
//   allocator.free(a);
//   allocator.allocate(8 << 20);                // fits in neither 6 MiB nor 5 MiB: a second segment
//   allocator.getReserved();                    // 40 MiB for 17 MiB
//
// Algorithm (AllocatorRules has the sizes): a size is rounded up. Sizes up to `small` come from small segments, others
// from large ones, and never from each other's. The shortest free part that is long enough is taken, of equal ones that
// of the lowest address; its front is cut off, unless too little would be left, and then all of it counts as allocated.
// Without such a part there is a new segment. What is freed joins the free parts beside it in its segment.
//
// A segment that would exceed the capacity is preceded by giving all unused segments back, which stalls the device.
//
// Limits: one stream. Segments do not grow.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_CACHINGALLOCATOR_H
#define STAGE_MEMORY_CACHINGALLOCATOR_H

#include "stage/Machine/Runtime.h"
#include <map>
#include <set>

namespace stage {

class CachingAllocator {
public:
  struct Block {
    int64_t bytes;     ///< That count as allocated.
    int64_t requested; ///< 0: it is free.
    int64_t segment;   ///< Its address.
    bool isSmall;
  };
  struct Segment {
    int64_t address, bytes;
  };

  /// `capacity`: bytes of all segments at most; 0: there is no limit.
  explicit CachingAllocator(const AllocatorRules &rules, int64_t capacity = 0) : rules(rules), capacity(capacity) {}

  /// Returns the address. The bytes are more than 0.
  int64_t allocate(int64_t bytes);
  void free(int64_t address);

  /// Of the last call, in the order in which they happened.
  llvm::ArrayRef<Segment> getGivenBack() const { return givenBack; }
  const std::optional<Segment> &getNewSegment() const { return newSegment; }

  const Block &get(int64_t address) const { return blocks.at(address); }
  /// All, by address; those of a segment follow each other.
  const std::map<int64_t, Block> &getBlocks() const { return blocks; }

  int64_t getAllocated() const { return allocated; }
  int64_t getReserved() const { return reserved; }
  int64_t getPeakAllocated() const { return peakAllocated; }
  int64_t getPeakReserved() const { return peakReserved; }
  int64_t getNumStalls() const { return numStalls; }
  /// Even after all unused segments were given back.
  bool exceedsCapacity() const { return capacity && peakReserved > capacity; }

private:
  using Blocks = std::map<int64_t, Block>;
  /// By bytes, then by address.
  using FreeBlocks = std::set<std::pair<int64_t, int64_t>>;

  FreeBlocks &getFree(const Block &block) { return freeBlocks[block.isSmall]; }
  Blocks::iterator addSegment(int64_t bytes, bool isSmall);
  void giveBack();
  /// Joins a free block with the one behind it, if that is free too and of the same segment.
  void join(Blocks::iterator block);

  const AllocatorRules rules;
  int64_t capacity;
  Blocks blocks;
  std::array<FreeBlocks, 2> freeBlocks;   ///< Of large segments, and of small ones.
  int64_t nextSegment = int64_t(1) << 30; ///< Its address.
  int64_t allocated = 0, reserved = 0, peakAllocated = 0, peakReserved = 0, numStalls = 0;
  std::vector<Segment> givenBack;
  std::optional<Segment> newSegment;
};

} // namespace stage

#endif // STAGE_MEMORY_CACHINGALLOCATOR_H
