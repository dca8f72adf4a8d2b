//===- MachineTest.cpp - what a device and a link take --------------------===//
//
// Expected times are quotients of amounts and rates, by hand.
//
//===----------------------------------------------------------------------===//
#include "stage/Machine/Machine.h"
#include "stage/IR/graph/Graph.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr Ticks second = ticksPerSecond;

MachineRates makeRates() {
  MachineRates rates;
  rates.flops = 1000;
  rates.memory = 100;
  rates.link = 10;
  rates.copy = 5;
  rates.latency = second;
  return rates;
}

TEST(MachineTest, ComputeTakesAsLongAsItsSlowerPart) {
  Machine machine = makeRates();
  llvm::StringRef missing;
  EXPECT_EQ(machine.ofCompute(2000, 100, false, missing), 2 * second);
  EXPECT_EQ(machine.ofCompute(1000, 500, false, missing), 5 * second);
  EXPECT_EQ(machine.ofCopy(50, missing), 10 * second);
  EXPECT_EQ(machine.ofMeasured(3), 3 * second / 1'000'000);
}

TEST(MachineTest, ARateThatIsNeededIsNamed) {
  MachineRates rates;
  rates.flops = 1;
  Machine machine = rates;
  llvm::StringRef missing;
  EXPECT_EQ(machine.ofCompute(1, 1, false, missing), std::nullopt);
  EXPECT_EQ(missing, "memory");
  EXPECT_EQ(machine.ofCompute(1, 1, true, missing), std::nullopt);
  EXPECT_EQ(missing, "host-flops");
  EXPECT_EQ(machine.ofCollective(CollectiveKind::AllReduce, 1, 2, missing), std::nullopt);
  EXPECT_EQ(missing, "link");
  EXPECT_EQ(machine.ofCopy(1, missing), std::nullopt);
  EXPECT_EQ(missing, "copy");
}

// 400 bytes at 10 a second, of 4 members: three steps of 100 bytes each way, and a second for each step.
TEST(MachineTest, CollectivesGoRoundARing) {
  Machine machine = makeRates();
  llvm::StringRef missing;
  auto take = [&](CollectiveKind kind) { return *machine.ofCollective(kind, 400, 4, missing) / second; };
  EXPECT_EQ(take(CollectiveKind::ReduceScatter), 30 + 3);
  EXPECT_EQ(take(CollectiveKind::AllToAll), 30 + 3);
  EXPECT_EQ(take(CollectiveKind::AllReduce), 60 + 6);
  EXPECT_EQ(take(CollectiveKind::AllGather), 120 + 3);
  EXPECT_EQ(take(CollectiveKind::Permute), 40 + 1);
  EXPECT_EQ(take(CollectiveKind::Broadcast), 40 + 3);
  EXPECT_EQ(take(CollectiveKind::Barrier), 6);
  EXPECT_EQ(machine.ofMessage(400, 2, missing), 41 * second);
}

TEST(MachineTest, UnitsNeedNoRates) {
  Machine machine = MachineUnits{3, 2, 5};
  llvm::StringRef missing;
  EXPECT_EQ(machine.ofCompute(1, 1, false, missing), 3 * Machine::ticksPerUnit);
  EXPECT_EQ(machine.ofCollective(CollectiveKind::AllToAll, 7, 8, missing), 2 * Machine::ticksPerUnit);
  EXPECT_EQ(machine.ofCopy(1, missing), 5 * Machine::ticksPerUnit);
}

GroupPlace findPlace(llvm::ArrayRef<int64_t> ranks, llvm::ArrayRef<int64_t> blockSizes) {
  return GroupPlace(ranks, blockSizes);
}

std::vector<int64_t> listRanks(int64_t begin, int64_t end, int64_t stride = 1) {
  std::vector<int64_t> ranks;
  for (int64_t rank = begin; rank < end; rank += stride)
    ranks.push_back(rank);
  return ranks;
}

TEST(GroupPlaceTest, AGroupLiesOnTheInnermostLevelThatContainsIt) {
  EXPECT_EQ(findPlace(listRanks(8, 16), {8, 64}), GroupPlace(8));
  EXPECT_EQ(findPlace({3}, {8, 64}), GroupPlace(1));
  // Eight ranks in a row that do not begin where a node does.
  GroupPlace crossing = findPlace(listRanks(6, 14), {8, 64});
  EXPECT_EQ(crossing.getLevel(), 1u);
  EXPECT_EQ(crossing.getShare(1), (GroupPlace::Share{2, 2}));
  // One member in each node, and the whole job.
  GroupPlace spread = findPlace(listRanks(1, 64, 8), {8, 64});
  EXPECT_EQ(spread.getLevel(), 1u);
  EXPECT_EQ(spread.getShare(1), (GroupPlace::Share{8, 1}));
  GroupPlace whole = findPlace(listRanks(0, 128), {8, 64});
  EXPECT_EQ(whole.getLevel(), 2u);
  EXPECT_EQ(whole.getShare(0), (GroupPlace::Share{128, 1}));
  EXPECT_EQ(whole.getShare(1), (GroupPlace::Share{16, 8}));
  EXPECT_EQ(whole.getShare(2), (GroupPlace::Share{2, 64}));
  // 64 of 72: the first 64 ranks share a domain, the next 64 do not.
  EXPECT_EQ(findPlace(listRanks(0, 64), {72}).getLevel(), 0u);
  EXPECT_EQ(findPlace(listRanks(64, 128), {72}).getShare(1), (GroupPlace::Share{2, 8}));
}

Machine makeNodes() {
  MachineRates rates;
  rates.name = "nodes";
  rates.levels = {{"node", 8, 100, {1, 1}, second}, {"rail", 64, 20, {1, 2}, 3 * second}};
  return rates;
}

TEST(MachineTest, PortsOfANodeShareWhatLeavesIt) {
  Machine machine = makeNodes();
  llvm::StringRef missing;
  auto take = [&](CollectiveKind kind, int64_t bytes, const std::vector<int64_t> &ranks) {
    return *machine.ofCollective(kind, bytes, machine.findPlace(ranks), missing) / second;
  };
  // Inside: 7 x 100 bytes at 100 a second, and 7 links.
  EXPECT_EQ(take(CollectiveKind::AllGather, 100, listRanks(0, 8)), 7 + 7);
  // One member a node: 7 x 100 bytes at half of 20 a second, and 7 links between nodes.
  EXPECT_EQ(take(CollectiveKind::AllGather, 100, listRanks(0, 64, 8)), 70 + 7 * 3);
  // All: 63 x 800 bytes by 8 ports, 630 s, while 504 s pass inside. 56 links inside, 7 between.
  EXPECT_EQ(take(CollectiveKind::AllGather, 800, listRanks(0, 64)), 630 + 56 + 7 * 3);
  EXPECT_EQ(take(CollectiveKind::AllReduce, 51200, listRanks(0, 64)), 2 * 630 + 2 * (56 + 7 * 3));
  // Two nodes of four: 7/8 inside and between, 4 ports.
  EXPECT_EQ(take(CollectiveKind::ReduceScatter, 1600, {0, 1, 2, 3, 8, 9, 10, 11}), 35 + 6 + 3);
  // Each member sends to four ranks of the other node by its own port: half of its bytes.
  EXPECT_EQ(take(CollectiveKind::AllToAll, 1600, {0, 1, 2, 3, 8, 9, 10, 11}), 80 + 3 + 4 * 3);
  EXPECT_EQ(*machine.ofMessage(100, machine.findPlace({7, 0}), missing), 2 * second);
  EXPECT_EQ(*machine.ofMessage(100, machine.findPlace({8, 7}), missing), 13 * second);
}

TEST(MachineTest, EfficienciesReduceRates) {
  MachineRates rates;
  rates.memory = 1001;
  rates.memoryEfficiency = {1, 2};
  llvm::StringRef missing;
  EXPECT_EQ(*Machine(rates).ofCompute(0, 1000, false, missing), 2 * second);
}

TEST(MachineTest, TimesAreRoundedAndEnd) {
  MachineRates rates;
  rates.flops = 3 * uint64_t(ticksPerSecond);
  rates.memory = 1;
  Machine machine = rates;
  llvm::StringRef missing;
  EXPECT_EQ(machine.ofCompute(4, 0, false, missing), 1);
  EXPECT_EQ(machine.ofCompute(5, 0, false, missing), 2);
  EXPECT_EQ(machine.ofCompute(0, INT64_MAX, false, missing), maxTicks);
}

TEST(TrafficTest, BytesOfACollectiveAreThoseThatLeaveARank) {
  EXPECT_EQ(int64_t(getTraffic(getCollectiveKind(OpKind::AllGather), 4).roundUp(100)), 300);
  EXPECT_EQ(int64_t(getTraffic(getCollectiveKind(OpKind::AllReduce), 4).roundUp(100)), 150);
  EXPECT_EQ(int64_t(getTraffic(getCollectiveKind(OpKind::ReduceScatter), 3).roundUp(100)), 67);
  EXPECT_EQ(int64_t(getTraffic(getCollectiveKind(OpKind::Permute), 4).roundUp(100)), 100);
}
} // namespace
