//===- ScheduleTextTest.cpp -----------------------------------------------===//
#include "Schedules.h"
#include "gtest/gtest.h"

using namespace stage;

TEST(ScheduleText, Units) {
  EXPECT_EQ((Unit{PhaseKind::Forward, 12, 0}).str(), "F12");
  EXPECT_EQ((Unit{PhaseKind::BackwardInput, 0, 3}).str(), "I0.3");
  std::vector<Unit> expected = {{PhaseKind::Forward, 0},
                                {PhaseKind::Backward, 10, 1},
                                {PhaseKind::BackwardInput, 2},
                                {PhaseKind::BackwardWeight, 2},
                                {PhaseKind::Recompute, 3, 2}};
  EXPECT_EQ(parseUnits("F0  B10.1 I2 W2.0 R3.2"), expected);
  EXPECT_EQ(parseUnits(""), std::vector<Unit>());
}

TEST(ScheduleText, Pairs) {
  std::optional<std::vector<Unit>> units = parseUnits("F0 F1.1|B0 W3");
  ASSERT_TRUE(units);
  ASSERT_EQ(units->size(), 4u);
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ((*units)[i].overlapsNext, i == 1);
  EXPECT_EQ(getPairBegin(*units, 2), 1u);
  EXPECT_EQ(getPairEnd(*units, 1), 3u);
  EXPECT_EQ(getPairBegin(*units, 3), 3u);
  EXPECT_EQ(makeOverlapped1F1B(2, 4).str(), "stages 2, microbatches 4, chunks 1\n"
                                            "stage 0: F0 F1 F2 B0|F3 B1 B2 B3\n"
                                            "stage 1: F0 B0|F1 B1|F2 B2|F3 B3\n");
}

TEST(ScheduleText, BadUnits) {
  for (const char *text : {"F0|", "|F0", "F0|B1|F2", "F0||B1", "F0 | B1", "F", "X0", "F0.", "F.1", "F0.1.2", "f0",
                           "F-1", "F0,F1", "0", "F99999999999"})
    EXPECT_FALSE(parseUnits(text)) << text;
}

TEST(ScheduleText, PrintsWhatTheHeaderShows) {
  EXPECT_EQ(make1F1B(2, 3).str(), "stages 2, microbatches 3, chunks 1\n"
                                  "stage 0: F0 F1 B0 F2 B1 B2\n"
                                  "stage 1: F0 B0 F1 B1 F2 B2\n");
  EXPECT_EQ(makeVee(2, 1).str(), "stages 2, microbatches 1, chunks 2\n"
                                 "placement 0 1 3 2\n"
                                 "stage 0: F0 F0.1 B0.1 B0\n"
                                 "stage 1: F0 F0.1 B0.1 B0\n");
}

TEST(ScheduleText, ReadsWhatItPrints) {
  for (const Schedule &schedule :
       {makeGPipe(1, 1), make1F1B(4, 7), makeInterleaved(3, 6, 2), makeZBH1(4, 5), makeVee(3, 2),
        makeOverlapped1F1B(3, 7), makeSchedule(2, 2, 1, [](unsigned, auto) {})}) {
    std::optional<Schedule> again = parseSchedule(schedule.str());
    ASSERT_TRUE(again) << schedule.str();
    EXPECT_EQ(again->str(), schedule.str());
    EXPECT_EQ(again->units, schedule.units);
    EXPECT_EQ(again->placement, schedule.placement);
  }
}

TEST(ScheduleText, BadSchedules) {
  for (const char *text :
       {"", "stages 1", "stages 1, microbatches 1, chunks 1 extra", "stages x, microbatches 1, chunks 1",
        "stages 1, microbatches 1, chunks 1\nF0 B0", "stages 1, microbatches 1, chunks 1\nstage 1: F0 B0",
        "stages 1, microbatches 1, chunks 1\nstage 0: F0 b0", "stages 1, microbatches 1, chunks 1\nplacement 0 x"})
    EXPECT_FALSE(parseSchedule(text)) << text;
}

TEST(EnvironmentsTest, BatchesAreAlike) {
  Environments all;
  unsigned first = all.add({{"g", 0}, {"context", 5}}), second = all.add({{"context", 5}, {"g", 1}}),
           later = all.add({{"context", 6}, {"g", 1}});
  EXPECT_EQ(all.add({{"context", 5}, {"g", 1}}), second);
  EXPECT_EQ(all.getAlike(second), first);
  EXPECT_TRUE(all.isFirstAlike(first));
  EXPECT_TRUE(all.isFirstAlike(later));
  EXPECT_EQ(all.add({{"g", 2}}), 4u);
  EXPECT_EQ(all.getAlike(4), 0u);
  EXPECT_EQ(all.getSymbols(), std::set<std::string>{"context"});
}
