//===- RankActivityTest.cpp - sums over what a rank does ------------------===//
#include "stage/Time/RankActivity.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr auto compute = ActivityKind::Compute, communicate = ActivityKind::Communication, copy = ActivityKind::Copy;

/// The example of RankActivity.h.
TEST(RankActivity, ExposedIsWhatRunsWithoutCompute) {
  RankActivity sums =
      summarize({{compute, 0, 4}, {communicate, 3, 6}, {compute, 6, 9}, {communicate, 9, 11}}, /*step=*/12);
  EXPECT_EQ(sums.compute, 7);
  EXPECT_EQ(sums.communication, 5);
  EXPECT_EQ(sums.exposed, 4);
  EXPECT_EQ(sums.idle, 1);
}

/// Two of one kind count once while they run together; copies count as alone only where nothing else runs.
TEST(RankActivity, TogetherTheyAreTheStep) {
  RankActivity sums = summarize(
      {{communicate, 0, 5}, {communicate, 2, 8}, {copy, 4, 12}, {copy, 10, 11}, {compute, 9, 10}, {compute, 3, 3}}, 20);
  EXPECT_EQ(sums.communication, 8);
  EXPECT_EQ(sums.exposed, 8);
  EXPECT_EQ(sums.copies, 8);
  EXPECT_EQ(sums.copiesAlone, 3); // [8, 9) and [10, 12)
  EXPECT_EQ(sums.compute, 1);
  EXPECT_EQ(sums.compute + sums.exposed + sums.copiesAlone + sums.idle, 20);
}

TEST(RankActivity, RanksThatDoTheSameAreOneLine) {
  RankActivity busy{.compute = 3'000'000}, idle{.idle = 3'000'000};
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, {3'000'000, 4, {{{3}, busy}, {{1}, idle}, {{0, 2}, busy}}}, Machine(MachineRates()));
  EXPECT_EQ(os.str(), "step: 3.000 us on 4 ranks\n"
                      "ranks   compute  communication  exposed   idle  idle %\n"
                      "0, 2-3    3.000          0.000    0.000  0.000    0.00\n"
                      "1         0.000          0.000    0.000  3.000  100.00\n");
}
} // namespace
