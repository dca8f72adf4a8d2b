//===- NetworkTest.cpp - a machine's network as ASTRA-sim has it ----------===//
//
// Dimensions are found by hand, and rings are held against their definition.
//
//===----------------------------------------------------------------------===//
#include "stage/AstraSim/Configuration.h"
#include "gtest/gtest.h"

using namespace stage;
using namespace stage::astrasim;

namespace {
/// Levels of these ranks; level i sends 10^9 * (10 - i) bytes per second.
Machine makeMachine(std::initializer_list<int64_t> ranks) {
  MachineRates rates;
  rates.name = "made";
  for (int64_t each : ranks)
    rates.levels.push_back({"level" + std::to_string(rates.levels.size()),
                            each,
                            uint64_t(10 - rates.levels.size()) * 1'000'000'000,
                            {1, 1},
                            0});
  return rates;
}

using Sizes = std::vector<int64_t>;
Sizes listSizes(const Network &network) {
  Sizes sizes;
  for (const NetworkDim &dim : network.getDims())
    sizes.push_back(dim.ranks);
  return sizes;
}

Sizes use(std::initializer_list<int64_t> levels, int64_t numRanks) {
  Machine machine = makeMachine(levels);
  Network network = Network::makeFromLevels(machine, numRanks);
  EXPECT_EQ(network.getNumRanks(), numRanks);
  return listSizes(network);
}

TEST(NetworkTest, LevelsAreUsedInPart) {
  EXPECT_EQ(use({8, 1024}, 8), (Sizes{8}));
  EXPECT_EQ(use({8, 1024}, 64), (Sizes{8, 8}));
  EXPECT_EQ(use({8, 1024}, 2), (Sizes{2}));
  EXPECT_EQ(use({8, 1024}, 12), (Sizes{6, 2}));
  EXPECT_EQ(use({72, 7200}, 64), (Sizes{64}));
  EXPECT_EQ(use({72, 7200}, 128), (Sizes{64, 2}));
  EXPECT_EQ(use({8, 1024}, 13), (Sizes{13})); // one rank of each node
  // 15 divides 60, but 6 does not divide 15.
  EXPECT_EQ(use({8, 16, 1024}, 60), (Sizes{6, 2, 5}));
}

TEST(NetworkTest, EveryNumberOfRanksHasANetworkThatFits) {
  Machine machine = makeMachine({8, 32, 4096});
  for (int64_t numRanks = 2; numRanks <= 4096; ++numRanks) {
    Network network = Network::makeFromLevels(machine, numRanks);
    ASSERT_EQ(network.getNumRanks(), numRanks);
    int64_t block = 1;
    for (const NetworkDim &dim : network.getDims()) {
      EXPECT_GT(dim.ranks, 1);
      block *= dim.ranks;
      EXPECT_LE(block, dim.level->ranks) << numRanks;
    }
  }
}

TEST(NetworkTest, SizesGetTheLevelThatHoldsThem) {
  Machine machine = makeMachine({8, 1024});
  Network network = Network::makeFromSizes(machine, {4, 1, 2, 16});
  EXPECT_EQ(listSizes(network), (Sizes{4, 2, 16}));
  EXPECT_EQ(network.getDims()[1].level->name, "level0");
  EXPECT_EQ(network.getDims()[2].level->name, "level1");
}

TEST(NetworkTest, ADimensionMaySpanLevels) {
  Machine machine = makeMachine({8, 1024});
  EXPECT_EQ(Network::findSpannedLevel(machine, 8, 8), nullptr);
  EXPECT_EQ(Network::findSpannedLevel(machine, 1, 8), nullptr);
  EXPECT_EQ(Network::findSpannedLevel(machine, 6, 8), nullptr); // nodes of 6: no two of them in a node of 8
  const MachineLevel *level = Network::findSpannedLevel(machine, 4, 16);
  ASSERT_NE(level, nullptr);
  EXPECT_EQ(level->name, "level0");
}

TEST(NetworkTest, RanksDifferInDimensions) {
  Machine machine = makeMachine({4, 8, 1024});
  Network network = Network::makeFromLevels(machine, 24);
  ASSERT_EQ(listSizes(network), (Sizes{4, 2, 3}));
  EXPECT_EQ(network.findInnermost(0, 13), 0u); // places 0 0 0 and 1 1 1
  EXPECT_EQ(network.findOutermost(0, 13), 2u);
  EXPECT_EQ(network.findInnermost(0, 12), 1u);
  EXPECT_EQ(network.findOutermost(3, 7), 1u);
}

/// Of all groups that are combinations of places: a link leaves one dimension alone, but the last one where the
/// outermost dimension of the group has an odd number of places.
TEST(NetworkTest, RingsChangeOneDimensionAtATime) {
  Machine machine = makeMachine({4, 12, 1024});
  Network network = Network::makeFromLevels(machine, 48);
  ASSERT_EQ(listSizes(network), (Sizes{4, 3, 4}));
  int64_t numRings = 0;
  for (unsigned places = 1; places < 1u << (4 + 3 + 4); ++places) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < 48; ++rank)
      if ((places >> rank % 4 & 1) && (places >> (4 + rank / 4 % 3) & 1) && (places >> (7 + rank / 12) & 1))
        ranks.push_back(rank);
    if (ranks.size() < 2)
      continue;
    ++numRings;
    std::vector<uint32_t> ring = network.orderRing(ranks);
    ASSERT_TRUE(std::is_permutation(ring.begin(), ring.end(), ranks.begin(), ranks.end()));
    unsigned outermost = network.findOutermost(ranks.front(), ranks.back());
    std::set<int64_t> groups;
    for (uint32_t rank : ranks)
      groups.insert(network.getCoordinate(rank, outermost));
    for (size_t i = 0; i < ring.size(); ++i) {
      uint32_t from = ring[i], to = ring[(i + 1) % ring.size()];
      bool mayFail = i + 1 == ring.size() && groups.size() % 2;
      EXPECT_TRUE(mayFail || network.findInnermost(from, to) == network.findOutermost(from, to)) << from << " " << to;
    }
  }
  EXPECT_GT(numRings, 1000);
}

TEST(ConfigurationTest, TimesOfTracesTakeThePlaceOfTheRoofline) {
  Machine machine = makeMachine({8});
  Network network = Network::makeFromLevels(machine, 8);
  auto makeSystem = [&](bool carriesDurations) {
    return makeSystemFile(network, machine, {}, findComputeTimes(carriesDurations), false);
  };
  EXPECT_TRUE(llvm::StringRef(makeSystem(false)).contains("\"roofline-enabled\": 1"));
  EXPECT_TRUE(llvm::StringRef(makeSystem(true)).contains("\"roofline-enabled\": 0"));
}

TEST(ConfigurationTest, NamesInTheScriptAreQuoted) {
  Machine machine = makeMachine({8});
  Network network = Network::makeFromLevels(machine, 8);
  RunFiles files;
  files.traces = "../it's $HOME";
  files.prefix = "workload";
  EXPECT_TRUE(llvm::StringRef(makeRunScript(network, files)).contains("traces=$here/'../it'\\''s $HOME'\n"));
}
} // namespace
