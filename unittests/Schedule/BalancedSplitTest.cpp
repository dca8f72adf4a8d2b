//===- BalancedSplitTest.cpp - against all ways to cut --------------------===//
#include "stage/Schedule/BalancedSplit.h"
#include <algorithm>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace stage;

namespace {
using Split = std::vector<int64_t>;

std::vector<StageLoad> listAll(const ChainLoad &chain) {
  std::vector<StageLoad> all;
  for (const ChainLoad::Run &run : chain.runs)
    all.insert(all.end(), run.count, run.load);
  return all;
}

/// The load of the virtual stage that bears most.
int64_t getLargest(const ChainLoad &chain, const std::vector<int64_t> &inFlight, const Split &split) {
  std::vector<StageLoad> all = listAll(chain);
  int64_t largest = 0, place = 0;
  for (size_t v = 0; v < split.size(); ++v) {
    __int128 load = 0;
    auto add = [&](const StageLoad &part) { load += part.once + part.perMicrobatch * inFlight[v]; };
    if (v == 0)
      add(chain.before);
    if (v + 1 == split.size())
      add(chain.behind);
    for (int64_t i = 0; i < split[v]; ++i)
      add(all[place++]);
    largest = std::max(largest, int64_t(load));
  }
  EXPECT_EQ(place, int64_t(all.size()));
  return largest;
}

bool bears(const StageLoad &load, int64_t inFlight) { return load.once + load.perMicrobatch * inFlight > 0; }

/// The smallest largest load of all ways to cut in which each virtual stage has something to do; -1 if there is none.
int64_t tryAll(const ChainLoad &chain, const std::vector<int64_t> &inFlight) {
  int64_t best = -1;
  Split split;
  std::function<void(int64_t)> go = [&](int64_t left) {
    size_t v = split.size();
    bool works =
        (v == 0 && bears(chain.before, inFlight[v])) || (v + 1 == inFlight.size() && bears(chain.behind, inFlight[v]));
    for (int64_t n = works ? 0 : 1; n <= left; ++n) {
      split.push_back(n);
      if (split.size() < inFlight.size())
        go(left - n);
      else if (n == left)
        if (int64_t largest = getLargest(chain, inFlight, split); best < 0 || largest < best)
          best = largest;
      split.pop_back();
    }
  };
  go(listAll(chain).size());
  return best;
}

ChainLoad makeEqual(int64_t count, __int128 load, int64_t before = 0, int64_t behind = 0) {
  return {{before, 0}, {behind, 0}, {{count, {load, 0}}}};
}
} // namespace

TEST(BalancedSplit, EqualIterationsAreSplitEvenly) {
  EXPECT_EQ(splitBalanced(makeEqual(8, 5), {1, 1, 1, 1}), (Split{2, 2, 2, 2}));
  EXPECT_EQ(splitBalanced(makeEqual(10, 5), {1, 1, 1, 1}), (Split{3, 3, 2, 2}));
  EXPECT_EQ(splitBalanced(makeEqual(5, 5), {1}), (Split{5}));
}

TEST(BalancedSplit, WhatStandsAtTheEndsCounts) {
  // 16 layers of 1 and a head of 2: 18 over 3.
  EXPECT_EQ(splitBalanced(makeEqual(16, 1, 0, 2), {1, 1, 1}), (Split{6, 6, 4}));
  EXPECT_EQ(splitBalanced(makeEqual(16, 1, 2, 0), {1, 1, 1}), (Split{4, 6, 6}));
  // Nothing is gained by layers beside a head that is more than the others bear.
  EXPECT_EQ(splitBalanced(makeEqual(8, 1, 0, 3), {1, 1, 1, 1}), (Split{3, 3, 2, 0}));
}

TEST(BalancedSplit, MemoryCountsByMicrobatchesInFlight) {
  // 1F1B of 3 stages: with 3, 2 and 1 in flight 11 layers are split as 1/3 : 1/2 : 1.
  EXPECT_EQ(splitBalanced({{}, {}, {{11, {0, 1}}}}, {3, 2, 1}), (Split{2, 3, 6}));
}

TEST(BalancedSplit, TooFewIterations) {
  EXPECT_EQ(splitBalanced(makeEqual(3, 1), {1, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(splitBalanced(makeEqual(3, 1, 0, 1), {1, 1, 1, 1}), (Split{1, 1, 1, 0}));
  EXPECT_EQ(splitBalanced(makeEqual(int64_t(1) << 62, __int128(1) << 80), {1, 1}), std::nullopt);
}

TEST(BalancedSplit, NoneOfAllWaysIsBetter) {
  std::mt19937 random(7);
  auto draw = [&](int64_t below) { return int64_t(random() % below); };
  for (unsigned trial = 0; trial < 3000; ++trial) {
    ChainLoad chain{{draw(2) * draw(9), draw(2) * draw(3)}, {draw(2) * draw(9), draw(2) * draw(3)}, {}};
    for (int64_t n = 1 + draw(4); n; --n)
      chain.runs.push_back({1 + draw(3), {draw(9), draw(3)}});
    std::vector<int64_t> inFlight(1 + draw(4));
    for (int64_t &times : inFlight)
      times = draw(4);
    int64_t best = tryAll(chain, inFlight);
    auto split = splitBalanced(chain, inFlight);
    ASSERT_EQ(split.has_value(), best >= 0) << trial;
    if (!split)
      continue;
    EXPECT_EQ(getLargest(chain, inFlight, *split), best) << trial;
    for (size_t v = 0; v < split->size(); ++v)
      EXPECT_TRUE((*split)[v] > 0 || (v == 0 && bears(chain.before, inFlight[v])) ||
                  (v + 1 == split->size() && bears(chain.behind, inFlight[v])))
          << trial;
  }
}

TEST(BalancedSplit, ManyEqualIterationsCostNothing) {
  auto start = std::chrono::steady_clock::now();
  ChainLoad chain{{7, 0}, {9, 0}, {}};
  for (unsigned i = 0; i < 1000; ++i)
    chain.runs.push_back({int64_t(1) << 40, {1 + i % 3, 0}});
  std::vector<int64_t> inFlight(512, 1);
  auto split = splitBalanced(chain, inFlight);
  ASSERT_TRUE(split);
  EXPECT_EQ(std::accumulate(split->begin(), split->end(), int64_t(0)), int64_t(1000) << 40);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}
