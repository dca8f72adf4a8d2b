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
  // One member a node: 7 x 100 bytes at half of 20 a second, and 8 links between nodes.
  EXPECT_EQ(take(CollectiveKind::AllGather, 100, listRanks(0, 64, 8)), 70 + 8 * 3);
  // All: 63 x 800 bytes by 8 ports, 630 s, while 448 s pass inside. 56 links inside, 8 between.
  EXPECT_EQ(take(CollectiveKind::AllGather, 800, listRanks(0, 64)), 630 + 56 + 8 * 3);
  // Twice 7 hops inside, and log2(8) = 3 between.
  EXPECT_EQ(take(CollectiveKind::AllReduce, 51200, listRanks(0, 64)), 2 * 630 + 2 * (7 + 3 * 3));
  // Two nodes of four: 7/8 inside and between, 4 ports.
  EXPECT_EQ(take(CollectiveKind::ReduceScatter, 1600, {0, 1, 2, 3, 8, 9, 10, 11}), 35 + 6 + 2 * 3);
  // Each member sends to four ranks of the other node by its own port: half of its bytes.
  EXPECT_EQ(take(CollectiveKind::AllToAll, 1600, {0, 1, 2, 3, 8, 9, 10, 11}), 80 + 6 + 2 * 3);
  EXPECT_EQ(*machine.ofMessage(100, machine.findPlace({7, 0}), missing), 2 * second);
  EXPECT_EQ(*machine.ofMessage(100, machine.findPlace({8, 7}), missing), 13 * second);
}

TEST(MachineTest, AJobFillsLevelsInPart) {
  MachineRates rates;
  rates.name = "racks";
  rates.levels = {{"host", 4, 100}, {"rack", 72, 50}, {"rail", 72 * 256, 10}};
  Machine machine = rates;
  auto listUsed = [&](int64_t numRanks) {
    std::vector<int64_t> used;
    Machine part = machine.usedBy(numRanks);
    for (const MachineLevel &level : part.getLevels())
      used.push_back(level.ranks);
    EXPECT_EQ(part.getBlockSizes(), llvm::ArrayRef(used).drop_back());
    return used;
  };
  EXPECT_EQ(listUsed(144), (std::vector<int64_t>{4, 72, 144}));
  EXPECT_EQ(listUsed(128), (std::vector<int64_t>{4, 64, 128}));
  EXPECT_EQ(listUsed(96), (std::vector<int64_t>{4, 48, 96}));
  EXPECT_EQ(listUsed(18), (std::vector<int64_t>{3, 18, 18}));
  EXPECT_EQ(listUsed(7), (std::vector<int64_t>{1, 7, 7}));
  EXPECT_EQ(listUsed(1), (std::vector<int64_t>{1, 1, 1}));
  // The second 64 ranks have a rack of their own.
  EXPECT_EQ(machine.usedBy(128).findPlace(listRanks(64, 128)).getLevel(), 1u);
  EXPECT_EQ(machine.findPlace(listRanks(64, 128)).getLevel(), 2u);
  // As many as the machine says: 24 of 72, in whole hosts, of which 4 or 3 ranks are used. One block holds a smaller
  // job.
  rates.levels[1].used = 24;
  machine = rates;
  EXPECT_EQ(listUsed(144), (std::vector<int64_t>{4, 24, 144}));
  EXPECT_EQ(listUsed(18), (std::vector<int64_t>{3, 18, 18}));
  rates.levels[0].used = 3;
  machine = rates;
  EXPECT_EQ(listUsed(144), (std::vector<int64_t>{3, 24, 144}));
  EXPECT_EQ(listUsed(2), (std::vector<int64_t>{2, 2, 2}));
}

TEST(MachineTest, ATableIsOfFullBlocks) {
  MachineRates rates;
  rates.name = "measured";
  rates.levels = {{"node", 8, 100, {1, 1}, second}, {"rail", 64, 10, {1, 1}, second}};
  rates.levels[1].collectives = {
      {CollectiveKind::AllGather, std::make_shared<Grid>(Grid{{{16}, {1600}}, {3e6}})}}; // 3 s
  llvm::StringRef missing;
  auto take = [&](const Machine &machine, int64_t numRanks) {
    GroupPlace place = machine.findPlace(listRanks(0, numRanks));
    return *machine.ofCollective(CollectiveKind::AllGather, 100, place, missing);
  };
  EXPECT_EQ(take(Machine(rates).usedBy(16), 16), 3 * second);
  // Two nodes of 6: 11 x 100 bytes by 6 ports, and 10 links inside, 2 between.
  Ticks ring = (1100 * second + 30) / 60 + 12 * second;
  EXPECT_EQ(take(Machine(rates).usedBy(12), 12), ring);
}

TEST(MachineTest, ATableSaysWhatACollectiveTakes) {
  MachineRates rates;
  rates.name = "measured";
  rates.levels = {{"node", 8, 100, {1, 1}, second}, {"rail", 64, 10, {1, 1}, 3 * second}};
  auto table = std::make_shared<Grid>(Grid{{{2, 4}, {100, 200}}, {1e6, 2e6, 3e6, 5e6}}); // 1, 2, 3 and 5 s
  rates.levels[0].collectives = {{CollectiveKind::ReduceScatter, table}, {CollectiveKind::AllGather, table}};
  rates.levels[0].inSwitch = {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter};
  rates.levels[0].inSwitchGain = {2, 1};
  Machine machine = rates;
  llvm::StringRef missing;
  auto take = [&](CollectiveKind kind, int64_t bytes, int64_t members) {
    return double(*machine.ofCollective(kind, bytes, members, missing)) / double(second);
  };
  EXPECT_DOUBLE_EQ(take(CollectiveKind::ReduceScatter, 150, 4), 4);  // between two points
  EXPECT_DOUBLE_EQ(take(CollectiveKind::ReduceScatter, 10, 4), 3);   // below the first one
  EXPECT_DOUBLE_EQ(take(CollectiveKind::ReduceScatter, 400, 4), 10); // at the rate of the last one
  EXPECT_DOUBLE_EQ(take(CollectiveKind::AllGather, 50, 4), 5);       // 200 bytes together
  EXPECT_NEAR(take(CollectiveKind::ReduceScatter, 100, 3), 3 * (2. / 3) / (3. / 4), 1e-11); // of two nearest the larger
  EXPECT_NEAR(take(CollectiveKind::ReduceScatter, 100, 6), 3 * (5. / 6) / (3. / 4) / 2, 1e-11); // and a switch
  // Without a table: 2 x 3/4 x 100 bytes, 6 hops; a switch helps five members and more: 2 x 4/5 x 100 bytes, 8 hops.
  EXPECT_DOUBLE_EQ(take(CollectiveKind::AllReduce, 100, 4), 1.5 + 6);
  EXPECT_DOUBLE_EQ(take(CollectiveKind::AllReduce, 100, 5), (1.6 + 8) / 2);
  EXPECT_TRUE(machine.isInsideTables(CollectiveKind::AllGather, 50, 4));
  EXPECT_FALSE(machine.isInsideTables(CollectiveKind::AllGather, 51, 4));
  EXPECT_FALSE(machine.isInsideTables(CollectiveKind::AllReduce, 100, 4));
  // Never below the time inside a node: 2 nodes of 4, 7/8 x 40 bytes by 4 ports of 10, 6 + 2 x 3 hops; inside 3 s.
  rates.levels[0].collectives[0].table = std::make_shared<Grid>(Grid{{{4}, {100}}, {99e6}});
  EXPECT_EQ(*Machine(rates).ofCollective(CollectiveKind::ReduceScatter, 40,
                                         Machine(rates).findPlace({0, 1, 2, 3, 8, 9, 10, 11}), missing),
            99 * second);
}

TEST(MachineTest, RingsAndCrowdedLevels) {
  MachineRates rates;
  rates.name = "torus";
  rates.levels = {{"node", 2, 100, {1, 1}, 0}, {"ring", 16, 20, {1, 1}, second}};
  rates.levels[1].isRing = true;
  rates.levels[1].oversubscription = {2, 1};
  Machine machine = rates;
  llvm::StringRef missing;
  GroupPlace place = machine.findPlace({0, 2, 4, 6, 8, 10, 12, 14}); // eight blocks, one member in each
  // From one block of eight to all others: 1+2+3+4+3+2+1 = 16 links, an eighth of 80 bytes on each, 10 a second.
  EXPECT_EQ(*machine.ofCollective(CollectiveKind::AllToAll, 80, place, missing), 16 * second + 8 * second);
  // An all_reduce cannot go up a tree: 2 x 7/8 x 80 bytes, twice 7 hops.
  EXPECT_EQ(*machine.ofCollective(CollectiveKind::AllReduce, 80, place, missing), 14 * second + 14 * second);
}

/// FLOPs of 1000 a second, memory of 100 a second: ticks count, as a launch is 2 us.
MachineRates makeMeasured() {
  MachineRates rates;
  rates.name = "measured";
  rates.type = "bf16";
  rates.flops = 1000;
  rates.memory = 100;
  rates.memoryEfficiency = {1, 2};
  rates.types[size_t(DType::BF16)].contraction.table =
      std::make_shared<Grid>(Grid{{{4, 16}, {8}, {2, 8}}, {2, 3, 4, 5}});
  return rates;
}
Work makeProduct(int64_t m, int64_t n, int64_t k) {
  Work work;
  work.kind = WorkKind::Contraction;
  work.type = DType::BF16;
  work.m = m, work.n = n, work.k = k;
  return work;
}
/// Seconds, with so many launches of 2 us in it.
double takeWork(const MachineRates &rates, const Work &work) {
  llvm::StringRef missing;
  return double(*Machine(rates).ofWork(work, missing)) / double(second);
}

TEST(MachineTest, ProductsTakeTheirRoofTimesARatio) {
  constexpr double launch = 2e-6;
  MachineRates rates = makeMeasured();
  // 4 x 8 by 2: 128 FLOPs 0.128 s, 2 (4*2 + 2*8 + 4*8) = 112 bytes 1.12 s.
  EXPECT_NEAR(takeWork(rates, makeProduct(4, 8, 2)), 2 * (1.12 + launch), 1e-9);
  // Half way between 4 and 16, and between 2 and 8, by logarithms: 8 x 8 by 4, 2 (32 + 32 + 64) = 256 bytes.
  EXPECT_NEAR(takeWork(rates, makeProduct(8, 8, 4)), 3.5 * (2.56 + launch), 1e-9);
  // Beyond the border the ratio stays: 64 x 8 by 2, 2 (128 + 16 + 512).
  EXPECT_NEAR(takeWork(rates, makeProduct(64, 8, 2)), 4 * (13.12 + launch), 1e-9);
  EXPECT_TRUE(Machine(rates).isInsideTables(makeProduct(8, 8, 4)));
  EXPECT_FALSE(Machine(rates).isInsideTables(makeProduct(8, 9, 4)));
  // Two products with weights of their own; and one with twice as many rows, whose bytes are too few.
  Work batch = makeProduct(4, 8, 2);
  batch.batch = 2;
  batch.isGrouped = true;
  EXPECT_NEAR(takeWork(rates, batch), 2 * 2 * (1.12 + launch), 1e-9);
  batch.isGrouped = false; // 8 x 8 by 2: 2 (16 + 16 + 64) = 192 bytes, ratio 3
  EXPECT_NEAR(takeWork(rates, batch), 3 * (1.92 + launch), 1e-9);
  batch.bytes = 1000; // at 50 a second
  EXPECT_NEAR(takeWork(rates, batch), 20, 1e-9);
  // A gradient is added in f32: 8 bytes instead of 2.
  Work gradient = makeProduct(4, 8, 2);
  gradient.resultBytes = 8 * 4 * 8;
  EXPECT_NEAR(takeWork(rates, gradient), 2 * (1.12 + launch) + 6 * 32 / 50., 1e-9);
  rates.types[size_t(DType::BF16)].sustained = {1, 2};
  EXPECT_NEAR(takeWork(rates, makeProduct(4, 8, 2)), 4 * (1.12 + launch), 1e-9);
  // Operands in f32 run on tensor cores where software lets them: 4 (8 + 16 + 32) bytes, no table.
  Work wide = makeProduct(4, 8, 2);
  wide.type = DType::F32;
  wide.allowsTF32 = true;
  rates.types[tf32Index].flops = 10;
  EXPECT_NEAR(takeWork(rates, wide), (12.8 + launch) / 0.6, 1e-9);
  // f16 has what bf16 has; f8 has nothing.
  Work half = makeProduct(4, 8, 2);
  half.type = DType::F16;
  EXPECT_NEAR(takeWork(rates, half), 4 * (1.12 + launch), 1e-9);
  half.type = DType::F8;
  llvm::StringRef missing;
  EXPECT_EQ(Machine(rates).ofWork(half, missing), std::nullopt);
  EXPECT_EQ(Machine(rates).describeMissing(missing),
            "'flops.f8' of machine 'measured' (it has flops of f16, bf16, tf32)");
}

TEST(MachineTest, WithoutATableAShareOfTheRoofIsReached) {
  constexpr double launch = 2e-6;
  MachineRates rates = makeMeasured();
  rates.types[size_t(DType::BF16)].contraction = {};
  auto withShare = [&](Rational share) {
    return double(*[&] {
             llvm::StringRef missing;
             return Machine(rates).withContraction(share).ofWork(makeProduct(4, 8, 2), missing);
           }()) /
           double(second);
  };
  EXPECT_NEAR(takeWork(rates, makeProduct(4, 8, 2)), (1.12 + launch) / 0.6, 1e-9);
  EXPECT_NEAR(withShare({3, 4}), (1.12 + launch) / 0.75, 1e-9);
  rates.types[size_t(DType::BF16)].contraction.share = Rational{1, 2};
  EXPECT_NEAR(withShare({3, 4}), (1.12 + launch) / 0.5, 1e-9);
  EXPECT_FALSE(Machine(rates).isInsideTables(makeProduct(4, 8, 2)));
}

TEST(MachineTest, AttentionAndOtherOps) {
  constexpr double launch = 2e-6;
  MachineRates rates = makeMeasured();
  Work work;
  work.kind = WorkKind::Attention;
  work.type = DType::BF16;
  work.rows = work.columns = 8;
  work.heads = 2, work.keyHeads = 1, work.headSize = work.valueSize = 4;
  work.pairs = 2 * 32;
  // 2 x 64 x 8 = 1024 FLOPs 1.024 s; 2 (2 x 8 + 8) x 8 = 384 bytes 3.84 s.
  EXPECT_NEAR(takeWork(rates, work), (3.84 + launch) / 0.35, 1e-9);
  rates.types[size_t(DType::BF16)].attention.table = std::make_shared<Grid>(Grid{{{2, 6}, {4, 16}, {2}}, {1, 2, 3, 5}});
  EXPECT_NEAR(takeWork(rates, work), 4 * (3.84 + launch), 1e-9); // head size 6 is as near as 2
  EXPECT_TRUE(Machine(rates).isInsideTables(Work()));
  work.isBackward = true;
  EXPECT_NEAR(takeWork(rates, work), 3 * 4 * (3.84 + launch), 1e-9);
  Work other;
  other.bytes = 100;
  other.flops = 5000;
  EXPECT_NEAR(takeWork(rates, other), 2, 1e-9); // at half of 100 a second
  rates.types[size_t(DType::F32)].flops = 1000;
  EXPECT_NEAR(takeWork(rates, other), 5, 1e-9);
  rates.kernelLeast = 7 * second;
  EXPECT_NEAR(takeWork(rates, other), 7, 1e-9);
}

/// A table from 4 rows on, and below it 107 FLOPs and 50 bytes a second, and a second for each product.
MachineRates makeSmall() {
  MachineRates rates = makeMeasured();
  rates.smallWeights = Rational{1, 2};
  rates.types[size_t(DType::BF16)].small = Rational{8, 75};
  rates.types[size_t(DType::BF16)].smallFloor = second;
  return rates;
}

TEST(MachineTest, ProductsOfFewRowsAddSquares) {
  constexpr double launch = 2e-6;
  MachineRates rates = makeSmall();
  // 64 FLOPs 0.6 s, 40 bytes 0.8 s: the hypotenuse is 1 s.
  Work work = makeProduct(2, 8, 2);
  work.bytes = 40;
  EXPECT_NEAR(takeWork(rates, work), 1 + 1, 1e-9);
  EXPECT_FALSE(Machine(rates).isInsideTables(work));
  // Two with one weight are one of two rows. f16 has the share and the floor of bf16.
  work.m = 1, work.batch = 2;
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  work.type = DType::F16;
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  // With a weight for each they are one kernel, too, as long as each has few rows.
  work.isGrouped = true;
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  work.m = 2, work.batch = 4; // 8 rows in all, more than the table's fewest: 2.4 s and 3.2 s
  work.bytes = 160;
  EXPECT_NEAR(takeWork(rates, work), 4 + 1, 1e-9);
  work.m = 4, work.batch = 2;
  EXPECT_NEAR(takeWork(rates, work), 2 * 2 * (1.12 + launch), 1e-9);
  // No more than the table's fewest rows take, which take what the table says: 112 bytes.
  work = makeProduct(2, 8, 2);
  work.bytes = 1000;
  EXPECT_NEAR(takeWork(rates, work), 2 * (1.12 + launch), 1e-9);
  work.m = 4;
  EXPECT_NEAR(takeWork(rates, work), 2 * (1.12 + launch), 1e-9);
  // A floor may be none, FLOPs may be more than those of the shape.
  work = makeProduct(2, 8, 2);
  work.bytes = 40;
  work.flops = 160; // 1.5 s
  rates.types[size_t(DType::BF16)].smallFloor.reset();
  EXPECT_NEAR(takeWork(rates, work), 1.7, 1e-9);
}

TEST(MachineTest, WhoSaysNothingOfFewRowsPricesThemAsOthers) {
  constexpr double launch = 2e-6;
  Work work = makeProduct(2, 8, 2);
  work.bytes = 40; // by shape 2 (4 + 16 + 16) = 72
  MachineRates rates = makeSmall();
  rates.smallWeights.reset();
  EXPECT_NEAR(takeWork(rates, work), 2 * (0.72 + launch), 1e-9);
  rates = makeSmall();
  rates.types[size_t(DType::BF16)].small.reset();
  EXPECT_NEAR(takeWork(rates, work), 2 * (0.72 + launch), 1e-9);
  // Without a table the share of the roof is one of FLOP/s, for all rows.
  rates.types[size_t(DType::BF16)].contraction = {.share = Rational{8, 75}};
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  work.m = 100;      // 30 s
  work.bytes = 2000; // 40 s
  EXPECT_NEAR(takeWork(rates, work), 51, 1e-9);
  // Who says neither has no share of FLOP/s, and its range is that of the roof.
  rates.types[size_t(DType::BF16)].contraction = {};
  EXPECT_NEAR(takeWork(rates, makeProduct(4, 8, 2)), (1.12 + launch) / 0.6, 1e-9);
  EXPECT_TRUE(Machine(rates).isAssumed(work));
  rates.types[size_t(DType::BF16)].small = Rational{1, 2};
  EXPECT_FALSE(Machine(rates).isAssumed(work));
}

TEST(MachineTest, AttentionToACacheAddsSquares) {
  constexpr double launch = 2e-6;
  MachineRates rates = makeMeasured();
  rates.cacheEfficiency = Rational{1, 2};
  rates.cacheAttention = Rational{32, 75};
  rates.cacheFloor = second;
  Work work;
  work.kind = WorkKind::Attention;
  work.type = DType::BF16;
  work.rows = 1, work.columns = 8;
  work.heads = 2, work.keyHeads = 1, work.headSize = work.valueSize = 4;
  work.pairs = 2 * 8;
  // 256 FLOPs 0.6 s; queries and results 2 x 2 x 8 = 32 bytes, the cache 40, which may be of another type: 0.8 s.
  work.bytes = 32 + 40;
  EXPECT_NEAR(takeWork(rates, work), 1 + 1, 1e-9);
  EXPECT_FALSE(Machine(rates).isInsideTables(work));
  // A cache of latent vectors is as any other, where a machine says nothing else: 1.2 s and 1.6 s.
  work.isLatent = true;
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  work.bytes = 32 + 80;
  rates.latentAttention = Rational{16, 75};
  rates.latentFloor = 3 * second;
  EXPECT_NEAR(takeWork(rates, work), 2 + 3, 1e-9);
  work.bytes = 32 + 40, work.isLatent = false;
  // A share of the roof of attention is one of FLOP/s.
  rates.cacheAttention.reset();
  rates.types[size_t(DType::BF16)].attention.share = Rational{32, 75};
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
  // Backward, and as many queries as keys: 256 FLOPs 0.256 s, 2 (2 x 8 + 8) x 8 = 384 bytes 3.84 s.
  work.isBackward = true; // 2 (2 + 8) x 8 = 160 bytes
  EXPECT_NEAR(takeWork(rates, work), 3 * (1.6 + launch) / (32. / 75), 1e-9);
  work.isBackward = false, work.rows = 8;
  EXPECT_NEAR(takeWork(rates, work), (3.84 + launch) / (32. / 75), 1e-9);
  // From the table's shortest sequence on queries are its.
  rates.types[size_t(DType::BF16)].attention.table = std::make_shared<Grid>(Grid{{{4}, {4, 16}, {2}}, {1, 3}});
  rates.cacheAttention = Rational{32, 75};
  work.rows = 4; // 2 (2 x 4 + 8) x 8 = 256 bytes
  EXPECT_NEAR(takeWork(rates, work), 2 * (2.56 + launch), 1e-9);
  work.rows = 3, work.bytes = 3 * 32 + 40;
  EXPECT_NEAR(takeWork(rates, work), 2, 1e-9);
}

TEST(MachineTest, MoreRowsAndLongerCachesAreNeverCheaper) {
  MachineRates rates = makeSmall();
  for (int64_t k : {1, 2, 5, 8, 30}) {
    double last = 0;
    for (int64_t m = 1; m <= 40; ++m) { // over the border of the table, at 4
      Work work = makeProduct(m, 8, k);
      work.bytes = 2 * (m * k + 8 * k + 8 * m);
      double price = takeWork(rates, work);
      EXPECT_GE(price, last) << m << " " << k;
      last = price;
    }
  }
  rates.cacheEfficiency = Rational{1, 2};
  rates.cacheAttention = Rational{1, 3};
  rates.cacheFloor = second;
  double last = 0;
  for (int64_t columns = 2; columns <= 200; ++columns) {
    Work work;
    work.kind = WorkKind::Attention;
    work.type = DType::BF16;
    work.rows = 1, work.columns = columns;
    work.heads = work.keyHeads = 2, work.headSize = work.valueSize = 4;
    work.pairs = 2 * columns;
    work.bytes = 2 * 2 * 8 * (columns + 1);
    double price = takeWork(rates, work);
    EXPECT_GT(price, last) << columns;
    last = price;
  }
}

TEST(MachineTest, EfficienciesReduceRates) {
  MachineRates rates;
  rates.memory = 1001;
  rates.memoryEfficiency = {1, 2};
  llvm::StringRef missing;
  EXPECT_EQ(*Machine(rates).ofCompute(0, 1000, false, missing), 2 * second);
}

MachineRates makeDeclared() {
  MachineRates rates = makeRates();
  rates.name = "declared";
  rates.type = "f16";
  rates.copy = 100;
  rates.levels = {{"node", 8, 1000, {1, 2}, 10, 100}, {"rail", 64, 100, {1, 1}, 0, 0}};
  rates.types[size_t(DType::BF16)].flops = 2000;
  rates.types[tf32Index].flops = 500;
  rates.flops = 2000; // those of bf16, which stand for f16
  return rates;
}

/// What it takes as a part of what it took.
template <typename F> double compare(const MachineRates &rates, llvm::StringRef entry, Rational times, F take) {
  Machine machine = rates;
  for (const MachineEntry &each : machine.listEntries())
    if (machine.getName(each) == entry)
      return double(take(machine.with(each, times))) / double(take(machine));
  ADD_FAILURE() << entry.str();
  return 0;
}

TEST(MachineTest, EntriesAreThoseThatAreSaid) {
  auto list = [](const Machine &machine) {
    std::string names;
    for (const MachineEntry &entry : machine.listEntries())
      names += machine.getName(entry) + (entry.isRate() ? " " : "- ");
    return names;
  };
  MachineRates rates = makeDeclared();
  EXPECT_EQ(list(rates), "flops.bf16 flops.tf32 memory.rate host.rate node.rate rail.rate node.base- node.hop- ");
  rates.types[size_t(DType::F16)].flops = rates.flops = 2000;
  rates.hostFlops = rates.hostMemory = 1;
  rates.kernelLeast = 1;
  rates.levels.pop_back();
  EXPECT_EQ(list(rates), "flops.f16 flops.bf16 flops.tf32 memory.rate host.rate host.flops host.memory node.rate "
                         "node.base- node.hop- kernel.least- ");
  rates.types[size_t(DType::BF16)].smallFloor = 1;
  rates.cacheFloor = 1;
  rates.latentFloor = 1;
  EXPECT_EQ(list(rates), "flops.f16 flops.bf16 flops.tf32 memory.rate host.rate host.flops host.memory node.rate "
                         "node.base- node.hop- kernel.least- small.floor.bf16- cache.floor- latent.floor- ");
  rates.promptFloor = rates.expertFloor = 1;
  EXPECT_EQ(list(rates), "flops.f16 flops.bf16 flops.tf32 memory.rate host.rate host.flops host.memory node.rate "
                         "node.base- node.hop- kernel.least- small.floor.bf16- cache.floor- latent.floor- "
                         "prompt.floor- experts.floor- ");
  EXPECT_EQ(list(makeRates()), ""); // rates without a machine
  EXPECT_EQ(list(MachineUnits()), "");
}

TEST(MachineTest, OneEntryChanges) {
  MachineRates rates = makeDeclared();
  rates.types[size_t(DType::BF16)].contraction.share = Rational{1, 1};
  rates.memory = uint64_t(1) << 60;
  llvm::StringRef missing;
  auto multiply = [&](DType type) {
    return [&missing, type](const Machine &machine) {
      Work work{.kind = WorkKind::Contraction, .type = type, .m = 1000, .n = 1000, .k = 1000};
      return *machine.ofWork(work, missing);
    };
  };
  // What is said of bf16 is of f16, too, and not of tf32. A share is kept.
  EXPECT_NEAR(compare(rates, "flops.bf16", {5, 4}, multiply(DType::BF16)), 0.8, 1e-9);
  EXPECT_NEAR(compare(rates, "flops.bf16", {5, 4}, multiply(DType::F16)), 0.8, 1e-9);
  rates.types[size_t(DType::F16)].flops = 2000;
  EXPECT_NEAR(compare(rates, "flops.bf16", {5, 4}, multiply(DType::F16)), 1, 1e-9);
  EXPECT_NEAR(
      compare(rates, "flops.f16", {5, 4}, [&](const Machine &machine) { return *machine.ofCosts(1000, 0, missing); }),
      0.8, 1e-9);

  rates = makeDeclared();
  auto read = [&](const Machine &machine) { return *machine.ofCosts(0, 1000, missing); };
  EXPECT_NEAR(compare(rates, "memory.rate", {5, 4}, read), 0.8, 1e-9);
  EXPECT_NEAR(compare(rates, "host.rate", {5, 4}, [&](const Machine &machine) { return *machine.ofCopy(50, missing); }),
              0.8, 1e-9);
  auto send = [&](std::vector<int64_t> ranks, int64_t bytes) {
    return [&missing, ranks, bytes](const Machine &machine) {
      return *machine.ofMessage(bytes, machine.findPlace(ranks), missing);
    };
  };
  EXPECT_NEAR(compare(rates, "node.rate", {5, 4}, send({0, 1}, 100)), 0.8, 1e-9);
  EXPECT_EQ(compare(rates, "node.rate", {5, 4}, send({0, 8}, 100)), 1);
  EXPECT_NEAR(compare(rates, "rail.rate", {5, 4}, send({0, 8}, 100)), 0.8, 1e-9);
  EXPECT_EQ(compare(rates, "node.hop", {9, 10}, send({0, 1}, 0)), 0.9);
  EXPECT_EQ(compare(rates, "node.base", {9, 10}, send({0, 1}, 0)), 1);
  // 100 and 3 hops of 10, then 90.
  auto gather = [&](const Machine &machine) { return *machine.ofCollective(CollectiveKind::AllGather, 0, 4, missing); };
  EXPECT_EQ(compare(rates, "node.base", {9, 10}, gather), 120. / 130);

  // Floors of few rows, also of f16 where only that of bf16 is said, and of new tokens.
  rates.smallWeights = rates.cacheEfficiency = Rational{1, 1};
  rates.types[size_t(DType::BF16)].small = Rational{1, 1};
  rates.types[size_t(DType::BF16)].smallFloor = 100;
  rates.cacheFloor = 100;
  rates.latentFloor = 200;
  rates.memory = uint64_t(1) << 60;
  Work product{.kind = WorkKind::Contraction, .type = DType::F16, .m = 0};
  Work attention{.kind = WorkKind::Attention, .type = DType::BF16, .rows = 1, .columns = 2};
  auto price = [&](const Work &work) {
    return [&missing, work](const Machine &machine) { return *machine.ofWork(work, missing); };
  };
  EXPECT_EQ(compare(rates, "small.floor.bf16", {9, 10}, price(product)), 0.9);
  EXPECT_EQ(compare(rates, "cache.floor", {9, 10}, price(attention)), 0.9);
  EXPECT_EQ(compare(rates, "latent.floor", {9, 10}, price(attention)), 1);
  attention.isLatent = true;
  EXPECT_EQ(compare(rates, "latent.floor", {9, 10}, price(attention)), 0.9);
  // A prompt and a sequence that decodes, 200 and 100; experts.
  attention.isLatent = false, attention.isPacked = true;
  attention.heads = 1, attention.pairs = 2, attention.promptPairs = 1;
  rates.promptFloor = 200;
  EXPECT_EQ(compare(rates, "prompt.floor", {9, 10}, price(attention)), 280. / 300);
  rates.types[size_t(DType::BF16)].experts = rates.expertWeights = Rational{1, 1};
  rates.expertFloor = 100;
  product = {.kind = WorkKind::Contraction, .type = DType::F16, .isGrouped = true, .experts = 1};
  EXPECT_EQ(compare(rates, "experts.floor", {9, 10}, price(product)), 0.9);

  // What was measured of a level is of its links.
  rates.levels[0].collectives = {
      {CollectiveKind::AllGather, std::make_shared<Grid>(Grid{{{2, 4}, {1, 9}}, {1, 2, 3, 4}})}};
  EXPECT_NEAR(compare(rates, "node.rate", {5, 4}, gather), 0.8, 1e-6);
  EXPECT_EQ(compare(rates, "rail.rate", {5, 4}, gather), 1);
}

TEST(MachineTest, ProductsOfWhichNothingIsSaidAreAssumed) {
  Machine machine = makeDeclared();
  Work work{.kind = WorkKind::Contraction, .type = DType::F16, .m = 1, .n = 1, .k = 1};
  EXPECT_TRUE(machine.isAssumed(work));
  EXPECT_FALSE(machine.withContraction(leastContraction).isAssumed(work));
  work.isOnHost = true;
  EXPECT_FALSE(machine.isAssumed(work));
  EXPECT_FALSE(machine.isAssumed({.kind = WorkKind::Attention, .type = DType::F16}));
  EXPECT_FALSE(machine.isAssumed({.type = DType::F16}));
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
