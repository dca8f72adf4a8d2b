//===- UnitPatternTest.cpp - units that differ in what they wait for ------===//
#include "UnitPattern.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr uint32_t all = UnitRelation::none;
constexpr uint32_t own = UnitPattern::Awaited::own;
using List = std::vector<std::pair<unsigned, uint32_t>>;

/// A unit of two tasks. Task 1 waits for task 0, for task 7 of the unit to which relations 0 lead, and for where
/// relation 1 leads.
class UnitPatternTest : public ::testing::Test {
protected:
  UnitPatternTest() {
    pattern.sources = {{0}, {1}};
    pattern.tasks.resize(2);
    pattern.awaited = {{0, 7}, {1, all}, {own, 0}};
    pattern.tasks[1].dataEnd = 1;
    pattern.tasks[1].end = 3;
  }

  /// What task 1 waits for of earlier units, as unit and task; nothing: the unit must be made.
  std::optional<List> refer(llvm::ArrayRef<UnitRelation> relations) {
    std::vector<uint32_t> related;
    for (const UnitRelation &relation : relations)
      if (relation.unit != all)
        related.push_back(relation.unit);
    llvm::sort(related);
    related.erase(std::unique(related.begin(), related.end()), related.end());
    unit = CompiledUnit();
    auto isOnLane = [](UnitRelation other, const UnitPattern::PatternTask &) { return other.task == 2; };
    if (!pattern.refer(relations, related, isOnLane, unit))
      return std::nullopt;
    EXPECT_EQ(unit.ends.size(), 2u);
    List list;
    for (uint32_t i = unit.ends[0]; i < unit.ends[1]; ++i)
      if (unit.awaited[i] < unit.references.size()) {
        const CompiledUnit::Reference &reference = unit.references[unit.awaited[i]];
        list.emplace_back(related[*reference.unit], reference.offset);
      } else {
        EXPECT_EQ(unit.awaited[i], unit.references.size()) << "task 0 of the unit";
      }
    return list;
  }

  UnitPattern pattern;
  CompiledUnit unit;
};

/// The place in a unit stays, that of a task is the relation's.
TEST_F(UnitPatternTest, WaitsForWhereTheSameRelationsLead) {
  EXPECT_EQ(refer({{3, all}, {5, 2}}), (List{{3, 7}, {5, 2}}));
  EXPECT_EQ(refer({{9, all}, {8, 6}}), (List{{9, 7}, {8, 6}}));
  // Task 0 waits for nothing, so it waits for the beginning of the step.
  EXPECT_EQ(unit.awaited[0], 0u);
  EXPECT_FALSE(unit.references[0].unit);
  EXPECT_EQ(unit.waitsOutside, (std::vector<uint32_t>{0, 1}));
}

/// An end that is not there, as that of a stream before the first unit.
TEST_F(UnitPatternTest, WaitsForNothingWhereARelationLeadsNowhere) { EXPECT_EQ(refer({{3, all}, {}}), (List{{3, 7}})); }

/// What a task waits for stands there once, data first, and of each list in the order of the step.
TEST_F(UnitPatternTest, WaitsAreSortedAndThereOnce) {
  EXPECT_EQ(refer({{8, all}, {8, 7}}), (List{{8, 7}}));
  pattern.tasks[1].dataEnd = 2;
  EXPECT_EQ(refer({{9, all}, {8, 6}}), (List{{8, 6}, {9, 7}}));
}

TEST_F(UnitPatternTest, IsMadeWhereRelationsDisagree) {
  pattern.sources[0] = {0, 2};
  EXPECT_EQ(refer({{3, all}, {5, 2}, {3, all}}), (List{{3, 7}, {5, 2}}));
  EXPECT_EQ(refer({{3, all}, {5, 2}, {4, all}}), std::nullopt);
}

/// A task of the unit is behind what an earlier one ran on the same lane.
TEST_F(UnitPatternTest, LeavesOutWhatIsOverOnItsLane) {
  pattern.tasks[1].isBehindOwn = true;
  EXPECT_EQ(refer({{3, all}, {5, 2}}), (List{{3, 7}}));
  EXPECT_EQ(refer({{3, all}, {5, 3}}), (List{{3, 7}, {5, 3}}));
}
} // namespace
