//===- UnitPrototypeTest.cpp - units that differ in what they wait for ----===//
#include "UnitPrototype.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr uint32_t all = UnitRelation::none;
const UnitPrototype::Lane lane = {0, 0}, otherLane = {1, 0};

/// A unit of one task, which waits for task 7 of unit 3 and for task 2 of unit 5.
class UnitPrototypeTest : public ::testing::Test {
protected:
  UnitPrototypeTest() {
    unit.references = {{0, 7}, {1, 2}};
    unit.facts = {0};
    unit.durations = {10};
    unit.awaited = {0, 1};
    unit.ends = {2};
    unit.waitsOutside = {0};
  }

  /// The references of a unit with these relations, as unit and task; empty: it must be made.
  std::vector<std::pair<unsigned, uint32_t>> derive(llvm::ArrayRef<UnitRelation> of,
                                                    llvm::ArrayRef<UnitRelation> relations,
                                                    llvm::ArrayRef<uint32_t> related,
                                                    llvm::ArrayRef<UnitPrototype::LaneCheck> checks = {}) {
    UnitPrototype prototype(unit, of, {3, 5}, checks);
    auto isOnLane = [](UnitRelation task, UnitPrototype::Lane asked) { return task.task == 2 && asked == lane; };
    std::unique_ptr<CompiledUnit> derived = prototype.derive(relations, related, isOnLane);
    std::vector<std::pair<unsigned, uint32_t>> references;
    for (size_t i = 0; derived && i < derived->references.size(); ++i)
      references.emplace_back(related[*derived->references[i].unit], derived->references[i].offset);
    return references;
  }
  using List = std::vector<std::pair<unsigned, uint32_t>>;

  CompiledUnit unit;
};

/// The place in a unit stays, that of a task is the relation's.
TEST_F(UnitPrototypeTest, WaitsForWhereTheSameRelationsLead) {
  EXPECT_EQ(derive({{3, all}, {5, 2}}, {{8, all}, {9, 6}}, {8, 9}), (List{{8, 7}, {9, 6}}));
  EXPECT_EQ(derive({{3, 7}, {5, all}}, {{8, 1}, {9, all}}, {8, 9}), (List{{8, 1}, {9, 2}}));
}

TEST_F(UnitPrototypeTest, IsMadeWhereRelationsDisagree) {
  EXPECT_EQ(derive({{3, all}, {3, 7}, {5, 2}}, {{8, all}, {8, 7}, {9, 6}}, {8, 9}), (List{{8, 7}, {9, 6}}));
  EXPECT_EQ(derive({{3, all}, {3, 7}, {5, 2}}, {{8, all}, {8, 4}, {9, 6}}, {8, 9}), List());
  EXPECT_EQ(derive({{3, all}, {3, all}, {5, 2}}, {{7, all}, {8, all}, {9, 6}}, {7, 8, 9}), List());
}

TEST_F(UnitPrototypeTest, IsMadeWhereNoRelationTellsIt) {
  EXPECT_EQ(derive({{3, all}, {5, 4}}, {{8, all}, {9, 4}}, {8, 9}), List());
}

/// What a task waits for is sorted, and stands there once.
TEST_F(UnitPrototypeTest, IsMadeWhereWaitsHaveAnotherOrder) {
  EXPECT_EQ(derive({{3, all}, {5, 2}}, {{9, all}, {8, 6}}, {8, 9}), List());
  EXPECT_EQ(derive({{3, all}, {5, 2}}, {{9, all}, {9, 7}}, {9}), List());
}

TEST_F(UnitPrototypeTest, IsMadeWhereItsOwnLaneIsOver) {
  // The task would wait for task 2 of unit 5, but one of its own is behind it.
  UnitPrototype::LaneCheck over = {{4, 2}, lane, true}, beside = {{4, 2}, otherLane, false};
  std::vector<UnitRelation> of = {{3, all}, {5, 2}, {4, 2}}, same = {{8, all}, {9, 6}, {7, 2}},
                            other = {{8, all}, {9, 6}, {7, 3}};
  EXPECT_EQ(derive(of, same, {7, 8, 9}, over), (List{{8, 7}, {9, 6}}));
  EXPECT_EQ(derive(of, other, {7, 8, 9}, over), List());
  EXPECT_EQ(derive(of, other, {7, 8, 9}, beside), (List{{8, 7}, {9, 6}}));
}
} // namespace
