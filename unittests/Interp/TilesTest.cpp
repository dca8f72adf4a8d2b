//===- TilesTest.cpp - to whom the tokens of a rank go --------------------===//
#include "Tiles.h"
#include "gtest/gtest.h"

using namespace stage;
using namespace stage::interp;

namespace {
/// `count` tiles, one behind the other, of `length` positions each.
Tiles makeTiles(int64_t count, int64_t length) {
  Tiles tiles;
  Tiles::Dim &dim = tiles.dims.emplace_back();
  dim.length = length;
  for (int64_t i = 0; i < count * length; ++i) {
    dim.local.push_back(i % length);
    dim.first.push_back(i / length * length);
  }
  return tiles;
}

/// How many choices of a tile each target gets.
std::vector<int64_t> count(const Tiles &tiles, int64_t tile, uint64_t identity, int64_t targets) {
  std::vector<int64_t> counts(targets);
  int64_t length = tiles.dims[0].length;
  for (int64_t i = tile * length; i < (tile + 1) * length; ++i)
    ++counts[tiles.deal(i, identity, targets)];
  return counts;
}

TEST(Tiles, EquallyManyWithoutALoad) {
  Tiles tiles = makeTiles(2, 8);
  for (uint64_t identity : {0, 5})
    EXPECT_EQ(count(tiles, 1, identity, 4), (std::vector<int64_t>{2, 2, 2, 2}));
}

TEST(Tiles, AsTheLoadSaysInEachTile) {
  Tiles tiles = makeTiles(3, 10);
  tiles.ends = {4, 4, 9, 10}; // 4, 0, 5 and 1
  for (int64_t tile : {0, 1, 2})
    for (uint64_t identity : {0, 3, 1023})
      EXPECT_EQ(count(tiles, tile, identity, 4), (std::vector<int64_t>{4, 0, 5, 1}));
  // Neighbours go to different targets.
  EXPECT_NE(tiles.deal(int64_t(0), 0, 4), tiles.deal(int64_t(1), 0, 4));
}

TEST(Tiles, OneTokenAndOneTarget) {
  Tiles tiles = makeTiles(1, 1);
  tiles.ends = {0, 1};
  EXPECT_EQ(tiles.deal(int64_t(0), 7, 2), 1);
}
} // namespace
