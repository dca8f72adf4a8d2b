//===- CompiledUnitTest.cpp - the tasks of a unit as numbers --------------===//
#include "CompiledUnit.h"
#include "gtest/gtest.h"
#include <random>

using namespace stage;

namespace {
/// Adds a task that waits for places.
void add(CompiledUnit &unit, Ticks duration, std::vector<uint32_t> awaited) {
  uint32_t task = unit.getNumTasks();
  if (llvm::any_of(awaited, [&](uint32_t place) { return place < unit.getFirstTask(); }))
    unit.waitsOutside.push_back(task);
  llvm::append_range(unit.awaited, awaited);
  unit.ends.push_back(uint32_t(unit.awaited.size()));
  unit.facts.push_back(0);
  unit.durations.push_back(duration);
}

/// Of tasks that take no more than alone, after the last one was added.
UnitCharges &getCharges(CompiledUnit &unit) { return unit.findCharges({}); }

/// As another class knows its runs, which has had none of them.
std::pair<const UnitRun *, Ticks> findRun(CompiledUnit &unit, llvm::ArrayRef<Ticks> references) {
  return KnownRuns().find(references, getCharges(unit));
}

std::unique_ptr<UnitRun> evaluate(CompiledUnit &unit, llvm::ArrayRef<Ticks> references) {
  std::unique_ptr<UnitRun> run = unit.startRun(getCharges(unit));
  llvm::copy(references, run->times.begin());
  EXPECT_TRUE(unit.runPlain(*run, 0, unit.getNumTasks()));
  return run;
}

/// Three references and two tasks: the first waits for [0] 900 and [1] 400, the second for the first one and [2] 390.
class CompiledUnitTest : public ::testing::Test {
protected:
  void SetUp() override {
    unit.references.resize(3);
    add(unit, 50, {0, 1});
    add(unit, 7, {3, 2});
    std::unique_ptr<UnitRun> run = evaluate(unit, {900, 400, 390});
    EXPECT_EQ(unit.getEnd(*run, 0), 950);
    EXPECT_EQ(unit.getEnd(*run, 1), 957);
    EXPECT_EQ(run->last, 957);
    unit.findLimits(*run);
    getCharges(unit).runs.push_back(std::move(run));
  }
  /// By how much later the known run is that references with these times have.
  std::optional<Ticks> find(llvm::ArrayRef<Ticks> references) {
    auto [run, later] = findRun(unit, references);
    return run ? std::optional(later) : std::nullopt;
  }

  CompiledUnit unit;
};

TEST_F(CompiledUnitTest, WhatDecidesMovesTheRun) {
  EXPECT_EQ(find({900, 400, 390}), 0);
  EXPECT_EQ(find({1700, 1250, 1240}), 800);
  EXPECT_EQ(find({1700, 0, 0}), 800); // what decides nothing may be earlier
  EXPECT_EQ(find({100, 90, 80}), -800);
}

TEST_F(CompiledUnitTest, OfATieTheFirstOneThatIsNamedDecides) {
  EXPECT_EQ(find({900, 900, 390}), 0);            // [0] is named before [1]
  EXPECT_EQ(find({900, 901, 390}), std::nullopt); // [1] decides
  EXPECT_EQ(find({900, 400, 950}), 0);            // the first task is named before [2]
  EXPECT_EQ(find({900, 400, 951}), std::nullopt); // [2] decides
  EXPECT_EQ(find({1000, 1000, 1051}), std::nullopt);
}

TEST_F(CompiledUnitTest, WhatIsNamedFirstMustEndBefore) {
  CompiledUnit other;
  other.references.resize(2);
  add(other, 5, {0, 1});
  std::unique_ptr<UnitRun> run = evaluate(other, {10, 20});
  other.findLimits(*run);
  getCharges(other).runs.push_back(std::move(run));
  EXPECT_EQ(findRun(other, {19, 20}).second, 0);
  EXPECT_NE(findRun(other, {19, 20}).first, nullptr);
  EXPECT_EQ(findRun(other, {20, 20}).first, nullptr); // then [0] decides
}

TEST_F(CompiledUnitTest, AReceiveEndsWithItsMessageUnlessItIsPostedLater) {
  CompiledUnit other;
  other.references.resize(1);
  other.received.push_back({0, 0, 0, false});
  other.receives.push_back(0);
  add(other, 0, {0});
  auto run = [&](Ticks posted, Ticks sent) {
    std::unique_ptr<UnitRun> result = other.startRun(getCharges(other));
    result->times[0] = posted;
    result->times[1] = sent;
    other.runReceive(*result, 0, 0);
    other.findLimits(*result);
    return result;
  };
  std::unique_ptr<UnitRun> late = run(10, 30), early = run(30, 10);
  EXPECT_EQ(other.getEnd(*late, 0), 30);
  EXPECT_EQ(late->causes[0], 1); // the message
  EXPECT_EQ(other.getEnd(*early, 0), 30);
  EXPECT_EQ(early->causes[0], 0); // what it was posted behind
  getCharges(other).runs.push_back(std::move(late));
  EXPECT_NE(findRun(other, {30, 30}).first, nullptr);
  EXPECT_EQ(findRun(other, {31, 30}).first, nullptr);
  getCharges(other).runs.clear();
  getCharges(other).runs.push_back(std::move(early));
  EXPECT_NE(findRun(other, {30, 29}).first, nullptr);
  EXPECT_EQ(findRun(other, {30, 30}).first, nullptr); // the message decides
}

TEST_F(CompiledUnitTest, TimeThatIsTooLongIsNoRun) {
  std::unique_ptr<UnitRun> run = unit.startRun(getCharges(unit));
  llvm::copy(llvm::ArrayRef<Ticks>{maxTicks - 50, 0, 0}, run->times.begin());
  EXPECT_FALSE(unit.runPlain(*run, 0, 2));
}

/// Runs that are found are those that evaluation gives, with the same causes; and whatever is not found differs.
TEST(CompiledUnitRandomTest, KnownRunsAreThoseThatEvaluationGives) {
  std::mt19937 random(7);
  auto pick = [&](uint32_t count) { return uint32_t(random() % count); };
  unsigned numFound = 0, numOthers = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    CompiledUnit unit;
    unit.references.resize(1 + pick(4));
    uint32_t numReferences = unit.getFirstTask();
    for (uint32_t task = 0, count = 1 + pick(6); task < count; ++task) {
      std::vector<uint32_t> awaited;
      for (unsigned i = 0; i <= pick(3); ++i)
        if (uint32_t place = pick(numReferences + task); !llvm::is_contained(awaited, place))
          awaited.push_back(place);
      add(unit, pick(4), awaited);
    }
    auto makeTimes = [&] {
      std::vector<Ticks> times;
      for (uint32_t i = 0; i < numReferences; ++i)
        times.push_back(20 + pick(8));
      return times;
    };
    std::unique_ptr<UnitRun> known = evaluate(unit, makeTimes());
    unit.findLimits(*known);
    getCharges(unit).runs.push_back(std::move(known));
    std::vector<Ticks> times = makeTimes();
    std::unique_ptr<UnitRun> expected = evaluate(unit, times);
    auto [found, later] = findRun(unit, times);
    const UnitRun &run = *getCharges(unit).runs.front();
    // Of equal causes all tasks are as much later.
    bool isSame = run.causes == expected->causes;
    Ticks shift = unit.getEnd(*expected, 0) - unit.getEnd(run, 0);
    for (uint32_t task = 0; task < unit.getNumTasks(); ++task)
      isSame &= unit.getEnd(*expected, task) - unit.getEnd(run, task) == shift;
    EXPECT_EQ(found != nullptr, isSame) << "round " << round;
    if (found) {
      EXPECT_EQ(later, shift) << "round " << round;
      EXPECT_EQ(run.last + later, expected->last) << "round " << round;
    }
    ++(found ? numFound : numOthers);
  }
  EXPECT_GT(numFound, 1000u);
  EXPECT_GT(numOthers, 1000u);
}
} // namespace
