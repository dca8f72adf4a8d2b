//===- FoldedLoopTest.cpp - one iteration for many equal ones -------------===//
//
// Which iterations are run is asserted as numbers.
//
//===----------------------------------------------------------------------===//
#include "stage/Walk/FoldedLoop.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
std::vector<int64_t> listIterations(const FoldedLoop &loop, int64_t first, int64_t last) {
  std::vector<int64_t> iterations;
  int64_t step = first <= last ? 1 : -1;
  for (int64_t i = first;; i = loop.getNext(i, step)) {
    iterations.push_back(i);
    if (i == last || iterations.size() > 1000)
      return iterations;
  }
}

TEST(FoldedLoopTest, OneCarriedValue) {
  FoldedLoop loop(IterationCases(), 10, 20, 1);
  EXPECT_EQ(listIterations(loop, 10, 19), (std::vector<int64_t>{10, 11, 12, 18, 19}));
  EXPECT_EQ(listIterations(loop, 19, 10), (std::vector<int64_t>{19, 18, 12, 11, 10}));
  EXPECT_EQ(loop.getCopies(11), 1);
  EXPECT_EQ(loop.getCopies(12), 6);
  EXPECT_EQ(loop.getCopies(18), 1);
}

TEST(FoldedLoopTest, TooShort) {
  FoldedLoop loop(IterationCases(), 0, 5, 1);
  EXPECT_EQ(listIterations(loop, 0, 4), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(loop.getCopies(2), 1);
}

/// What goes round between three names is at the same one after 2 or 3 iterations: multiples of 6 are left out.
TEST(FoldedLoopTest, WholePeriodsOfCarriedValues) {
  FoldedLoop loop(IterationCases(), 0, 25, 3);
  EXPECT_EQ(loop.getNext(4, 1), 17);
  EXPECT_EQ(loop.getNext(17, -1), 4);
  EXPECT_EQ(loop.getCopies(4), 13);
  EXPECT_EQ(FoldedLoop(IterationCases(), 0, 1000, 5).getNext(500, 1), 501);
}

/// Whoever asks only what was before: all from the iteration on whose values come from the run, but for one at the end.
TEST(FoldedLoopTest, OfReadsAloneNoIterationsBehind) {
  auto findGap = [](unsigned numCarried, bool isReverse) {
    FoldedLoop loop = FoldedLoop::makeOfReads(IterationCases(), 0, 10, numCarried, isReverse);
    const FoldedLoop::Gap *gap = loop.findGap(5);
    return gap ? std::pair(gap->begin, gap->end) : std::pair(int64_t(-1), int64_t(-1));
  };
  using Range = std::pair<int64_t, int64_t>;
  EXPECT_EQ(findGap(0, false), Range(1, 9));
  EXPECT_EQ(findGap(1, false), Range(1, 9));
  EXPECT_EQ(findGap(2, false), Range(2, 8)); // periods of 2
  EXPECT_EQ(findGap(2, true), Range(1, 7));
  EXPECT_EQ(findGap(3, true), Range(1, 7)); // periods of 6
}

TEST(FoldedLoopTest, EachRunOfACaseByItself) {
  IterationCases cases;
  cases.append(0, 3);
  cases.append(1, 100);
  cases.append(0, 1);
  cases.append(1, 10);
  FoldedLoop loop(cases, 1, 112, 1); // cut by a pipeline
  EXPECT_EQ(listIterations(loop, 1, 111),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 101, 102, 103, 104, 105, 106, 110, 111}));
  EXPECT_EQ(loop.getCopies(5), 96);
  EXPECT_EQ(loop.getCopies(106), 4);
}

/// Five of one and one of another are like one iteration of a longer body.
TEST(FoldedLoopTest, RoundsOfCases) {
  IterationCases cases;
  for (unsigned round = 0; round < 20; ++round) {
    cases.append(0, 5);
    cases.append(1, 1);
  }
  cases.append(2, 3);
  FoldedLoop loop(cases, 0, 123, 1);
  EXPECT_EQ(loop.getNext(17, 1), 108);
  EXPECT_EQ(loop.getNext(108, -1), 17);
  EXPECT_EQ(loop.getNext(119, 1), 120);
  EXPECT_EQ(loop.getCopies(11), 1);
  for (int64_t iteration = 12; iteration < 18; ++iteration)
    EXPECT_EQ(loop.getCopies(iteration), 16);
  EXPECT_EQ(loop.getCopies(108), 1);
}

TEST(FoldedLoopTest, RoundsOfDifferentLengths) {
  IterationCases cases;
  for (unsigned round = 0; round < 27; ++round) {
    cases.append(0, round < 7 ? 5 : 2);
    cases.append(1, 1);
  }
  FoldedLoop loop(cases, 0, 102, 1);
  EXPECT_EQ(loop.getNext(17, 1), 30);
  EXPECT_EQ(loop.getNext(41, 1), 42);
  EXPECT_EQ(loop.getNext(50, 1), 96);
}
} // namespace
