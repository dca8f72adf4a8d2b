//===- PipelineChainTest.cpp ----------------------------------------------===//
#include "stage/IR/graph/PipelineChain.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace stage;

namespace {
using Range = std::pair<int64_t, int64_t>;

TEST(PipelineChainTest, StageWithTheEndOfOneRepeatAndTheBeginningOfTheNext) {
  PipelineChain chain({3, 5}, {2, 2, 2, 2});
  EXPECT_EQ(chain.getRange(0, 0), Range(0, 2));
  EXPECT_EQ(chain.getRange(0, 1), Range(2, 3));
  EXPECT_EQ(chain.getRange(1, 1), Range(0, 1));
  EXPECT_EQ(chain.getRange(0, 2), Range(3, 3));
  EXPECT_EQ(chain.getRange(1, 0), Range(0, 0));
  EXPECT_EQ(chain.getRange(1, 3), Range(3, 5));
  EXPECT_EQ(chain.getLast(0), 1u);
  EXPECT_EQ(chain.getFirst(1), 1u);
  EXPECT_EQ(chain.getLast(1), 3u);
  using Kinds = std::vector<std::pair<unsigned, bool>>;
  EXPECT_EQ(chain.listKindsOfCuts(), (Kinds{{0, true}, {1, true}}));
}

TEST(PipelineChainTest, CutBetweenRepeatsIsOneOfTheSecondBeforeItBegins) {
  PipelineChain chain({2, 6}, {2, 3, 3});
  EXPECT_EQ(chain.getLast(0), 0u);
  EXPECT_EQ(chain.getCutRepeat(0), 1u);
  EXPECT_EQ(chain.getRange(1, 0), Range(0, 0));
  using Kinds = std::vector<std::pair<unsigned, bool>>;
  EXPECT_EQ(chain.listKindsOfCuts(), (Kinds{{1, false}, {1, true}}));
}

TEST(PipelineChainTest, OneRepeatIsEnteredOnTheFirstStageAndLeftOnTheLast) {
  PipelineChain chain({4}, {0, 4, 0});
  EXPECT_EQ(chain.getFirst(0), 0u);
  EXPECT_EQ(chain.getLast(0), 2u);
  EXPECT_EQ(chain.getCutRepeat(0), 0u);
  EXPECT_EQ(chain.getCutRepeat(1), 0u);
  EXPECT_EQ(chain.getRange(0, 2), Range(4, 4));
}

TEST(PipelineChainTest, NothingIsCutBeforeTheEntryAndBehindTheExit) {
  PipelineChain chain({4}, {0, 0, 4, 0, 0}, /*entry=*/1, /*exit=*/3);
  EXPECT_EQ(chain.getFirst(0), 1u);
  EXPECT_EQ(chain.getLast(0), 3u);
  EXPECT_EQ(chain.getCutRepeat(0), std::nullopt);
  EXPECT_EQ(chain.getCutRepeat(1), 0u);
  EXPECT_EQ(chain.getCutRepeat(2), 0u);
  EXPECT_EQ(chain.getCutRepeat(3), std::nullopt);
}

TEST(PipelineChainTest, SplitsEvenly) {
  EXPECT_EQ(splitEvenly(8, 4), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(splitEvenly(10, 4), (std::vector<int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(splitEvenly(int64_t(1) << 62, 3).front(), (int64_t(1) << 62) / 3 + 1);
}

/// Against a list of all iterations.
TEST(PipelineChainTest, RandomChains) {
  std::mt19937 random(7);
  for (unsigned test = 0; test < 2000; ++test) {
    std::vector<int64_t> counts(1 + random() % 4), split(1 + random() % 6, 0);
    std::vector<std::pair<unsigned, int64_t>> all; // repeat, iteration
    for (unsigned repeat = 0; repeat < counts.size(); ++repeat) {
      counts[repeat] = random() % 5;
      for (int64_t i = 0; i < counts[repeat]; ++i)
        all.emplace_back(repeat, i);
    }
    for (size_t i = 0; i < all.size(); ++i)
      ++split[random() % split.size()];
    PipelineChain chain(counts, split);
    unsigned last = split.size() - 1, number = 0;
    for (unsigned v = 0; v <= last; ++v)
      for (int64_t i = 0; i < split[v]; ++i, ++number) {
        auto [repeat, iteration] = all[number];
        auto [begin, end] = chain.getRange(repeat, v);
        EXPECT_TRUE(begin <= iteration && iteration < end);
        EXPECT_TRUE(chain.getFirst(repeat) <= v && v <= chain.getLast(repeat));
        bool isEnd = iteration + 1 == counts[repeat] && repeat + 1 < counts.size();
        EXPECT_TRUE(!isEnd || chain.getLast(repeat) == v);
      }
    EXPECT_EQ(chain.getFirst(0), 0u);
    EXPECT_EQ(chain.getLast(counts.size() - 1), last);
    for (unsigned v = 0; v < last; ++v) {
      unsigned cut = *chain.getCutRepeat(v);
      EXPECT_TRUE(chain.getFirst(cut) <= v && v < chain.getLast(cut));
    }
    for (unsigned repeat = 0; repeat < counts.size(); ++repeat) {
      int64_t sum = 0;
      for (unsigned v = 0; v <= last; ++v)
        sum += chain.getRange(repeat, v).second - chain.getRange(repeat, v).first;
      EXPECT_EQ(sum, counts[repeat]);
    }
  }
}
} // namespace
