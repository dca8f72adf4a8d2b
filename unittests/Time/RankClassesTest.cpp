//===- RankClassesTest.cpp - ranks that do the same at the same times -----===//
#include "stage/Time/RankClasses.h"
#include "ProgramTest.h"
#include <set>

using namespace stage;

namespace {
/// Two stages, ranks that do the same on each, and rules about some of them.
class RankClassesTest : public ProgramTest {
protected:
  /// `permute`: an op on the value x of a layer, of which it makes z.
  void buildWith(const std::string &rules, const std::string &mesh = "pp = 2, dp = 4",
                 const std::string &permute = "") {
    build("graph Chain {\n  dim B;\n  mesh (" + mesh + R"();
  bind B = 8;
  microbatches 2;
  )" + rules +
          R"(
  pipeline layers over pp {
    split 1, 1;
    units "F0 F1 B0 B1";
    units "F0 B0 F1 B1";
  }
  optimizer sgd { state m: f32; flops = volume; }
  op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
  op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);
  op loss(x: [b]) -> (result: [] = sum[b](x[b]));
  op loss.dx[b](dy: []) -> (result: [b] = dy[]);
  forward {
    %x0 = input : f32[B] {_};
    %r = repeat layers [2] loop 0 (%x = %x0 : f32[B] {_}) : f32[B] {_} do {
      %g = param : f32[B] {_};
      )" + permute +
          R"(
      %y = scale(%x, %g) : f32[B] {_};
      yield %y;
    }
    %l = loss(%r) : f32[];
    return %l;
  }
  backward {
    %one = constant 1 : f32[];
    %dr = loss.dx(%one) [b = B] : f32[B] {_};
    %dx0 = repeat layers [2] loop 0 reverse (%dy = %dr : f32[B] {_}) : f32[B] {_} do {
      %dg = scale.dx(%dy, %x) : f32[B] {_};
      %ag = accumulate(%dg, %g) : f32[B] {_};
      %dx = scale.dx(%dy, %g) : f32[B] {_};
      yield %dx;
    }
  }
  step {
    repeat layers [2] loop 0 () do {
      update(%g, %ag);
      yield;
    }
  }
})");
  }
};

TEST_F(RankClassesTest, AStageIsAClass) {
  ASSERT_NO_FATAL_FAILURE(buildWith(""));
  RankClasses classes(*program, {}, /*apart=*/false);
  EXPECT_EQ(classes.getNumClasses(), 2u);
  for (int64_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(classes.find(rank), classes.find(rank / 4 * 4));
  EXPECT_EQ(classes.describe(classes.find(5)).stage, 1u);
  RankClasses::GroupSize size = classes.getGroupSize({.axes = 0b10, .stages = {}});
  EXPECT_EQ(size.classes, 1u);
  EXPECT_EQ(size.members, 4);
  size = classes.getGroupSize({.axes = 0b11, .stages = {1}});
  EXPECT_EQ(size.classes, 1u);
  EXPECT_EQ(size.members, 4);
  EXPECT_EQ(RankClasses(*program, {}, /*apart=*/true).getNumClasses(), 8u);
}

TEST_F(RankClassesTest, RanksAreAlikeWhereBlocksEndAlike) {
  ASSERT_NO_FATAL_FAILURE(buildWith(""));
  auto count = [&](int64_t block) { return RankClasses(*program, {block}, /*apart=*/false).getNumClasses(); };
  EXPECT_EQ(count(2), 2u); // half of dp
  EXPECT_EQ(count(4), 2u);
  EXPECT_EQ(count(8), 2u);
  EXPECT_EQ(count(72), 2u); // the whole job
  EXPECT_EQ(count(3), 2u);  // no message between stages stays in a block
  EXPECT_EQ(count(6), 4u);  // those of dp = 0 and 1 do
  EXPECT_EQ(count(5), 4u);  // that of dp = 0 does
  EXPECT_EQ(count(7), 4u);
  EXPECT_EQ(RankClasses(*program, {}, false).listMembers({.axes = 0b10, .stages = {}}, 6),
            (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(RankClasses(*program, {}, false).listMembers({.axes = 0b11, .stages = {1}}, 6),
            (std::vector<int64_t>{4, 5, 6, 7}));
}

/// In blocks of 6 ranks: 0 to 3, 4 5 | 6 7, 8 to 11 of the first stage. The ranks of dp = 1 are in two blocks, those of
/// 0 and of 2 in one; tp = 0 and 1 are with the one half of dp, 2 and 3 with the other.
TEST_F(RankClassesTest, ABlockCutsAGroup) {
  ASSERT_NO_FATAL_FAILURE(buildWith("", "pp = 2, dp = 3, tp = 4"));
  RankClasses classes(*program, {6}, /*apart=*/false);
  EXPECT_EQ(classes.getNumClasses(), 8u);
  EXPECT_EQ(classes.find(0), classes.find(9));
  EXPECT_EQ(classes.find(2), classes.find(11));
  EXPECT_EQ(classes.find(4), classes.find(5));
  std::set<unsigned> apart;
  for (int64_t rank : {0, 2, 4, 6, 12, 14, 16, 18})
    apart.insert(classes.find(rank));
  EXPECT_EQ(apart.size(), 8u);
}

/// Ranks that send to a neighbour: 0 1 | 2 3 | 4 5 | 6 7 have one in their block and one outside. In blocks of 3 of 8
/// ranks no two lie alike.
TEST_F(RankClassesTest, NeighboursAreAlikeFromBlockToBlock) {
  ASSERT_NO_FATAL_FAILURE(buildWith("", "pp = 2, dp = 8", "%z = permute(%x) over dp by 1 : f32[B] {_};"));
  auto list = [&](int64_t block) {
    RankClasses classes(*program, {block}, /*apart=*/false);
    std::vector<unsigned> numbers;
    for (int64_t rank = 0; rank < 8; ++rank)
      numbers.push_back(classes.find(rank));
    return numbers;
  };
  using Numbers = std::vector<unsigned>;
  EXPECT_EQ(list(2), (Numbers{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(list(4), (Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(list(8), Numbers(8, 0));
  EXPECT_EQ(list(3), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(RankClasses(*program, {2, 4}, false).getNumClasses(), 8u);
  EXPECT_EQ(RankClasses(*program, {2}, false).getNumRanks(0), 4);
}

/// One that is slow has neighbours that wait for it, and these have others.
TEST_F(RankClassesTest, NeighboursOfASlowRankAreNotAlike) {
  ASSERT_NO_FATAL_FAILURE(
      buildWith("slow (pp = 1, dp = 2) by 3/2;", "pp = 2, dp = 4", "%z = permute(%x) over dp by 1 : f32[B] {_};"));
  EXPECT_EQ(RankClasses(*program, {2}, /*apart=*/false).getNumClasses(), 8u);
}

TEST_F(RankClassesTest, ASlowRankIsAClassOfEachStage) {
  ASSERT_NO_FATAL_FAILURE(buildWith("slow (pp = 1, dp = 2) by 3/2;"));
  RankClasses classes(*program, {}, /*apart=*/false);
  EXPECT_EQ(classes.getNumClasses(), 4u);
  EXPECT_EQ(classes.find(4), classes.find(5));
  EXPECT_EQ(classes.find(4), classes.find(7));
  EXPECT_NE(classes.find(4), classes.find(6));
  EXPECT_EQ(classes.getRepresentative(classes.find(7)), 4);
  EXPECT_TRUE(classes.describe(classes.find(6)).slowness);
  EXPECT_FALSE(classes.describe(classes.find(2)).slowness);
  EXPECT_EQ(classes.getGroupSize({.axes = 0b10, .stages = {}}).classes, 2u);
}
} // namespace
