//===- RationalTest.cpp ---------------------------------------------------===//
#include "stage/Symbolic/Size.h"
#include "gtest/gtest.h"
#include <random>

using namespace stage;

static Rational make(__int128 num, __int128 den) { return *Rational::make(num, den); }
static constexpr __int128 largest = (__int128(1) << 126) - 1 + (__int128(1) << 126);

TEST(Rational, LowestTerms) {
  EXPECT_EQ(make(6, -4).str(), "-3/2");
  EXPECT_EQ(make(0, -7), Rational{});
  EXPECT_EQ(make(-8, 4).str(), "-2");
  EXPECT_EQ(make(largest, largest).str(), "1");
  EXPECT_FALSE(Rational::make(1, 0));
}

TEST(Rational, PrintsAllBits) {
  EXPECT_EQ((Rational{largest, 1}).str(), "170141183460469231731687303715884105727");
  EXPECT_EQ((Rational{-largest - 1, 1}).str(), "-170141183460469231731687303715884105728");
}

TEST(Rational, Arithmetic) {
  EXPECT_EQ(*make(1, 6).add(make(1, 10)), make(4, 15));
  EXPECT_EQ(*make(1, 6).sub(make(1, 6)), Rational{});
  EXPECT_EQ(*make(14, 15).mul(make(-5, 7)), make(-2, 3));
  EXPECT_EQ(*make(14, 15).div(make(-7, 5)), make(-2, 3));
  EXPECT_FALSE(make(1, 2).div(Rational{}));
}

TEST(Rational, OverflowIsSeen) {
  Rational huge{largest, 1};
  EXPECT_FALSE(huge.add(Rational::integer(1)));
  EXPECT_FALSE(huge.mul(Rational::integer(2)));
  EXPECT_FALSE((Rational{-largest - 1, 1}).mul(Rational::integer(-1)));
  EXPECT_FALSE(Rational{}.sub(Rational{-largest - 1, 1}));
  EXPECT_FALSE(make(1, largest).mul(make(1, 2)));
  // What fits in lowest terms does not overflow on the way.
  EXPECT_EQ(*huge.mul(make(1, largest)), Rational::integer(1));
  EXPECT_EQ(*huge.add(Rational{-largest, 1}), Rational{});
}

TEST(Rational, FloorAndCeil) {
  EXPECT_EQ(make(7, 2).floor().num, 3);
  EXPECT_EQ(make(-7, 2).floor().num, -4);
  EXPECT_EQ(make(7, 2).ceil().num, 4);
  EXPECT_EQ(make(-7, 2).ceil().num, -3);
  EXPECT_EQ(make(-6, 2).ceil().num, -3);
}

TEST(Rational, CompareIsExact) {
  // Cross products of these need 252 bits; they differ in the last one.
  EXPECT_LT(make(largest - 2, largest - 1).compare(make(largest - 1, largest)), 0);
  EXPECT_GT(make(-(largest - 2), largest - 1).compare(make(-(largest - 1), largest)), 0);
  EXPECT_EQ(make(1, 3).compare(make(1, 3)), 0);
  EXPECT_LT((Rational{-largest - 1, 3}).compare(Rational{}), 0);

  std::mt19937 random(7);
  for (int i = 0; i < 10000; ++i) {
    auto pick = [&](int low) { return low + int(random() % 40); };
    int a = pick(-20), b = pick(1), c = pick(-20), d = pick(1);
    int expected = (a * d > c * b) - (a * d < c * b);
    EXPECT_EQ(make(a, b).compare(make(c, d)), expected) << a << "/" << b << " and " << c << "/" << d;
  }
}
