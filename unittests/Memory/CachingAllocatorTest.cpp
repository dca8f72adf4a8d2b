//===- CachingAllocatorTest.cpp -------------------------------------------===//
//
// Sizes are those of PyTorch's allocator; what it does with them is worked out by hand. A script compares
// whole programs with an independent simulator (test/Memory/allocator.test).
//
//===----------------------------------------------------------------------===//
#include "stage/Memory/CachingAllocator.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr int64_t KiB = 1024, MiB = 1024 * KiB;
const AllocatorRules rules = {.round = 512,
                              .small = MiB,
                              .smallSegment = 2 * MiB,
                              .large = 10 * MiB,
                              .largeSegment = 20 * MiB,
                              .segmentRound = 2 * MiB,
                              .unsplit = MiB};

TEST(CachingAllocatorTest, SmallTensorsShareASegmentInRoundedParts) {
  CachingAllocator allocator(rules);
  int64_t a = allocator.allocate(1), b = allocator.allocate(513);
  EXPECT_EQ(b, a + 512);
  EXPECT_EQ(allocator.getAllocated(), 512 + 1024);
  EXPECT_EQ(allocator.getReserved(), 2 * MiB);
  allocator.allocate(MiB);
  EXPECT_EQ(allocator.getReserved(), 2 * MiB) << "all three fit";
  allocator.allocate(MiB);
  EXPECT_EQ(allocator.getReserved(), 4 * MiB);
}

TEST(CachingAllocatorTest, LargeTensorsTakeNoSmallSegment) {
  CachingAllocator allocator(rules);
  allocator.free(allocator.allocate(MiB));
  allocator.allocate(MiB + 1);
  EXPECT_EQ(allocator.getReserved(), 22 * MiB);
}

TEST(CachingAllocatorTest, VeryLargeTensorsHaveSegmentsOfTheirOwn) {
  CachingAllocator allocator(rules);
  allocator.allocate(10 * MiB - 512);
  EXPECT_EQ(allocator.getReserved(), 20 * MiB);
  allocator.allocate(10 * MiB + 513); // 512 B more than what is left in it
  EXPECT_EQ(allocator.getReserved(), 20 * MiB + 12 * MiB);
}

/// 12 MiB for 11.5 MiB: the rest is too short to be cut off, and counts as allocated.
TEST(CachingAllocatorTest, ShortRestsAreNotCutOff) {
  CachingAllocator allocator(rules);
  int64_t a = allocator.allocate(11 * MiB + 512 * KiB);
  EXPECT_EQ(allocator.getAllocated(), 12 * MiB);
  EXPECT_EQ(allocator.get(a).requested, 11 * MiB + 512 * KiB);
  allocator.free(a);
  int64_t b = allocator.allocate(11 * MiB); // leaves exactly 1 MiB
  EXPECT_EQ(b, a);
  EXPECT_EQ(allocator.getAllocated(), 12 * MiB);
  allocator.free(b);
  allocator.allocate(11 * MiB - 512);
  EXPECT_EQ(allocator.getAllocated(), 11 * MiB - 512);
}

TEST(CachingAllocatorTest, TheShortestPartThatIsLongEnoughIsTaken) {
  CachingAllocator allocator(rules);
  int64_t a = allocator.allocate(40 * MiB), b = allocator.allocate(24 * MiB), c = allocator.allocate(24 * MiB);
  allocator.free(a);
  allocator.free(c);
  allocator.free(b);
  EXPECT_EQ(allocator.allocate(23 * MiB), b) << "of equal ones the lowest address";
  EXPECT_EQ(allocator.allocate(24 * MiB), c);
  EXPECT_EQ(allocator.allocate(24 * MiB), a);
}

TEST(CachingAllocatorTest, FreedNeighboursJoinInTheirSegmentOnly) {
  CachingAllocator allocator(rules);
  int64_t a = allocator.allocate(6 * MiB), b = allocator.allocate(6 * MiB), c = allocator.allocate(8 * MiB);
  ASSERT_EQ(allocator.getReserved(), 20 * MiB);
  allocator.allocate(20 * MiB); // the next segment, behind it
  allocator.free(a);
  allocator.free(c);
  allocator.free(b);
  EXPECT_EQ(allocator.getBlocks().size(), 2u);
  allocator.allocate(20 * MiB);
  EXPECT_EQ(allocator.getReserved(), 40 * MiB);
}

/// The example of the header.
TEST(CachingAllocatorTest, FragmentsAreReserved) {
  CachingAllocator allocator(rules);
  int64_t a = allocator.allocate(6 * MiB);
  allocator.allocate(9 * MiB);
  allocator.free(a);
  allocator.allocate(8 * MiB);
  EXPECT_EQ(allocator.getReserved(), 40 * MiB);
  EXPECT_EQ(allocator.getAllocated(), 17 * MiB);
  EXPECT_EQ(allocator.getPeakAllocated(), 17 * MiB);
}

TEST(CachingAllocatorTest, UnusedSegmentsAreGivenBackBeforeTheCapacityIsExceeded) {
  CachingAllocator allocator(rules, 64 * MiB);
  int64_t a = allocator.allocate(30 * MiB), b = allocator.allocate(30 * MiB);
  allocator.free(a);
  allocator.allocate(34 * MiB);
  ASSERT_EQ(allocator.getGivenBack().size(), 1u);
  EXPECT_EQ(allocator.getGivenBack().front().address, a);
  EXPECT_EQ(allocator.getNumStalls(), 1);
  EXPECT_EQ(allocator.getReserved(), 64 * MiB);
  EXPECT_FALSE(allocator.exceedsCapacity());
  allocator.allocate(2 * MiB);
  EXPECT_TRUE(allocator.exceedsCapacity());
  EXPECT_EQ(allocator.getNumStalls(), 1) << "there is nothing to give back";
  allocator.free(b);
}

/// n tensors against 2 n: blocks are found by their size.
TEST(CachingAllocatorTest, ALongSequenceReusesWhatIsFree) {
  CachingAllocator allocator(rules);
  std::vector<int64_t> live;
  for (int round = 0; round < 100'000; ++round) {
    live.push_back(allocator.allocate(((round * 7919) % 97 + 1) * 100 * KiB));
    if (live.size() > 50) {
      allocator.free(live[round % 50]);
      live[round % 50] = live.back();
      live.pop_back();
    }
  }
  EXPECT_LE(allocator.getPeakReserved(), 2 * allocator.getPeakAllocated());
  for (int64_t address : live)
    allocator.free(address);
  EXPECT_EQ(allocator.getAllocated(), 0);
}
} // namespace
