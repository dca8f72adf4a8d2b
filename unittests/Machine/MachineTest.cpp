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
  EXPECT_EQ(machine.ofMessage(400, missing), 41 * second);
}

TEST(MachineTest, UnitsNeedNoRates) {
  Machine machine = MachineUnits{3, 2, 5};
  llvm::StringRef missing;
  EXPECT_EQ(machine.ofCompute(1, 1, false, missing), 3 * Machine::ticksPerUnit);
  EXPECT_EQ(machine.ofCollective(CollectiveKind::AllToAll, 7, 8, missing), 2 * Machine::ticksPerUnit);
  EXPECT_EQ(machine.ofCopy(1, missing), 5 * Machine::ticksPerUnit);
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
