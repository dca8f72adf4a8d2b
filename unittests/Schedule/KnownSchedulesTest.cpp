//===- KnownSchedulesTest.cpp - schedules that need no second check -------===//
#include "stage/Schedule/KnownSchedules.h"
#include "Schedules.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
class KnownSchedulesTest : public ::testing::Test {
protected:
  bool check(const Schedule &schedule) { return known.check(schedule, diags); }
  RecvPosts post(const Schedule &schedule, bool communicates, unsigned ahead) {
    auto list = [&] {
      RecvPosts posts;
      for (const std::vector<Unit> &units : schedule.units)
        for (unsigned i = 0; i != units.size(); ++i)
          (i ? posts.back() : posts.emplace_back()).push_back(i < ahead ? 0 : i - ahead);
      return posts;
    };
    auto work = [&](unsigned, const Unit &) { return communicates; };
    return *known.post(schedule, {communicates, ahead == 1}, list, work, diags);
  }

  llvm::SourceMgr sources;
  DiagnosticList messages;
  DiagnosticEngine diags{sources, &messages};
  KnownSchedules known;
};
} // namespace

/// Each is like one that is right, but for one of the things that decide.
TEST_F(KnownSchedulesTest, WrongOnesAreNotTakenForRightOnes) {
  const Schedule right = makeGPipe(2, 2);
  auto refuses = [&](llvm::function_ref<void(Schedule &)> change) {
    EXPECT_TRUE(check(right));
    Schedule wrong = right;
    change(wrong);
    messages.all.clear();
    bool isRight = check(wrong) || messages.all.empty();
    bool isRightAgain = check(wrong); // what is wrong is said of each
    return !isRight && !isRightAgain && messages.all.size() >= 2;
  };
  EXPECT_TRUE(refuses([](Schedule &s) { std::swap(s.units[1][0].kind, s.units[1][2].kind); }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.units[1][1].microbatch = 0; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.units[1][1].chunk = 1; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.units[1][0].overlapsNext = true; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.units[1].pop_back(); }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.units.pop_back(); }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.microbatches = 3; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.stages = 3; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.chunks = 2; }));
  EXPECT_TRUE(refuses([](Schedule &s) { s.placement = {0, 0}; }));
  Schedule inference = right;
  inference.training = false;
  for (std::vector<Unit> &units : inference.units)
    llvm::erase_if(units, [](const Unit &unit) { return unit.kind == PhaseKind::Backward; });
  EXPECT_TRUE(check(inference));
  inference.training = true;
  EXPECT_FALSE(check(inference));
}

TEST_F(KnownSchedulesTest, PostsDependOnWork) {
  Schedule schedule = makeGPipe(2, 3);
  RecvPosts one = post(schedule, false, 1), two = post(schedule, false, 2);
  EXPECT_EQ(one, (RecvPosts{{0, 0, 1, 2, 3, 4}, {0, 0, 1, 2, 3, 4}}));
  EXPECT_EQ(two, (RecvPosts{{0, 0, 0, 1, 2, 3}, {0, 0, 0, 1, 2, 3}}));
  EXPECT_EQ(post(schedule, false, 1), one);
  Schedule longer = makeGPipe(2, 4);
  EXPECT_EQ(post(longer, false, 1).front().size(), 8u);
  EXPECT_TRUE(messages.all.empty());
}

/// More schedules than are kept.
TEST_F(KnownSchedulesTest, ForgetsTheFirst) {
  for (unsigned round = 0; round != 2; ++round)
    for (unsigned m = 1; m != 100; ++m)
      EXPECT_TRUE(check(makeGPipe(2, m)));
}
