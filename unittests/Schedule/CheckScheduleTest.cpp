//===- CheckScheduleTest.cpp - schedules that are wrong -------------------===//
#include "Schedules.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace stage;

/// What checking a schedule given as text prints.
static std::string check(llvm::StringRef text) {
  std::optional<Schedule> schedule = parseSchedule(text);
  EXPECT_TRUE(schedule) << text.str();
  std::string messages;
  llvm::raw_string_ostream os(messages);
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, os);
  bool right = checkSchedule(*schedule, diags);
  EXPECT_EQ(right, os.str().empty());
  EXPECT_EQ(right, !diags.hasErrors());
  return os.str();
}

TEST(CheckSchedule, RightOnesAreSilent) {
  EXPECT_EQ(check("stages 2, microbatches 1, chunks 1\nstage 0: F0 R0 B0\nstage 1: F0 I0 W0\n"), "");
  EXPECT_EQ(check("stages 1, microbatches 2, chunks 1\nstage 0: F1 F0 I0 I1 W1 W0\n"), "");
}

TEST(CheckSchedule, Misses) {
  EXPECT_EQ(
      check("stages 2, microbatches 2, chunks 1\nstage 0: F0 B0\nstage 1: F0 F1 B0 I1\n"),
      "error: stage 0 never runs F1, and a schedule runs each unit once on each stage [schedule-misses]\n"
      "note: the last 1 of 2 microbatches lack it: add 'for i in m - w..m { forward(i); }' at the end, where m is "
      "the microbatches, and w is 1 on this stage: the forwards before its first forward\n"
      "note: and 1 more like it on stage 0\n"
      "error: stage 1 never runs W1, and a schedule runs each unit once on each stage [schedule-misses]\n"
      "note: add 'backward_weight(i);' where this stage is to run it\n");
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 2\nstage 0: F0 F0.1 B0.1 W0\n"),
            "error: stage 0 never runs I0, and a schedule runs each unit once on each stage [schedule-misses]\n"
            "note: add 'backward_input(i);' where this stage is to run it\n");
  // A stage that runs nothing at all.
  EXPECT_EQ(check("stages 2, microbatches 1, chunks 1\nstage 0: F0 B0\nstage 1:\n"),
            "error: stage 1 never runs F0, and a schedule runs each unit once on each stage [schedule-misses]\n"
            "note: add 'forward(i);' where this stage is to run it\n"
            "note: and 1 more like it on stage 1\n");
}

TEST(CheckSchedule, Repeats) {
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 F0 B0 B0 B0\n"),
            "error: stage 0 runs F0 twice, at positions 0 and 1 [schedule-repeats]\n"
            "note: and 2 more like it on stage 0\n");
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 R0 R0 B0\n"),
            "error: stage 0 runs R0 twice, at positions 1 and 2 [schedule-repeats]\n");
}

TEST(CheckSchedule, OutOfRange) {
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 B0 F1 F0.1\n"),
            "error: stage 0 runs F1 at position 2, but there are 1 microbatches and 1 chunks, numbered from 0 "
            "[schedule-out-of-range]\n"
            "note: and 1 more like it on stage 0\n");
}

TEST(CheckSchedule, MixesBackward) {
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 B0 W0\n"),
            "error: stage 0 runs both B0 and W0: a microbatch has either one whole backward (B) or two halves "
            "(I and W) [schedule-mixes-backward]\n");
}

TEST(CheckSchedule, WrongOrder) {
  EXPECT_EQ(check("stages 2, microbatches 1, chunks 1\nstage 0: F0 B0\nstage 1: B0 F0\n"),
            "error: stage 1 runs B0 at position 0, but it needs F0, which the stage runs later, at position 1; let it "
            "run F0 first "
            "[schedule-wrong-order]\n");
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 W0 I0\n"),
            "error: stage 0 runs W0 at position 1, but it needs I0, which the stage runs later, at position 2; let it "
            "run I0 first "
            "[schedule-wrong-order]\n");
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: R0 F0 B0\n"),
            "error: stage 0 runs R0 at position 0, but it needs F0, which the stage runs later, at position 1; let it "
            "run F0 first "
            "[schedule-wrong-order]\n");
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 1\nstage 0: F0 B0 R0\n"),
            "error: stage 0 runs B0 at position 1, but it needs R0, which the stage runs later, at position 2; let it "
            "run R0 first "
            "[schedule-wrong-order]\n");
}

TEST(CheckSchedule, Pairs) {
  for (unsigned p : {1, 2, 3, 4})
    for (unsigned m : {1, 2, 5, 9})
      EXPECT_EQ(check(makeOverlapped1F1B(p, m).str()), "") << p << " " << m;
  EXPECT_EQ(check("stages 1, microbatches 2, chunks 1\nstage 0: F0|F1 B0|B1\n"),
            "error: stage 0 overlaps F0 and F1 at position 0; a pair has one unit that goes forward and one that goes "
            "backward: 'overlap(backward(i), forward(j));' [schedule-overlap]\n"
            "note: and 1 more like it on stage 0\n");
  EXPECT_EQ(check("stages 1, microbatches 2, chunks 1\nstage 0: F0|B0 F1 B1\n"),
            "error: stage 0 overlaps F0 and B0 at position 0, but backward of a microbatch needs its forward; overlap "
            "units of two microbatches [schedule-overlap]\n");
}

TEST(CheckSchedule, APairThatWaitsForItselfNeverFinishes) {
  // F1 of stage 0 waits for B0, which stage 1 runs beside F1.
  EXPECT_EQ(check("stages 2, microbatches 2, chunks 1\nstage 0: F0 B0|F1 B1\nstage 1: F0 B0|F1 B1\n"),
            "error: the schedule never finishes: stage 0 waits with B0 at position 1 for B0 of stage 1 at position 1 "
            "[schedule-stuck]\n"
            "note: stage 1 waits with F1 at position 2 for F1 of stage 0 at position 2\n"
            "note: let stage 0 run F1 before B0, as a longer warmup of forwards does\n");
}

TEST(CheckSchedule, NumberOfStages) {
  EXPECT_EQ(check("stages 2, microbatches 1, chunks 1\nstage 0: F0 B0\n"),
            "error: the schedule lists the units of 1 stages, but the pipeline has 2 [schedule-wrong-stages]\n");
}

TEST(CheckSchedule, Placement) {
  const char *const rest = "stage 0: F0 F0.1 B0.1 B0\nstage 1: F0 F0.1 B0.1 B0\n";
  const std::string header = "stages 2, microbatches 1, chunks 2\nplacement ";
  EXPECT_EQ(check(header + "0 1 3 2\n" + rest), "");
  EXPECT_EQ(check(header + "0 1 2\n" + rest),
            "error: the schedule says where 3 virtual stages are, but the pipeline has 4 [schedule-placement-size]\n");
  EXPECT_EQ(
      check(header + "0 1 4 1\n" + rest),
      "error: chunk 1 of stage 0 is placed at virtual stage 4, but there are 4, numbered from 0 "
      "[schedule-placement-range]\n"
      "error: virtual stage 1 is placed twice, the second time at chunk 1 of stage 1 [schedule-placement-twice]\n");
}

// Two copies of the model on two stages: microbatch 0 goes 0, 1 through the first, microbatch 1 goes 1, 0 through the
// other.
TEST(CheckSchedule, Copies) {
  const std::string header = "stages 2, microbatches 2, chunks 2\n", copies = header + "copies 2\n";
  const std::string units = "stage 0: F0 F1.1 B1.1 B0\nstage 1: F1.1 F0 B0 B1.1\n";
  EXPECT_EQ(check(copies + "placement 0 1 3 2\n" + units), "");
  EXPECT_EQ(check(header + "copies 3\n" + units),
            "error: 3 copies of the model cannot share 2 chunks evenly [schedule-copies]\n");
  EXPECT_EQ(check(header + "copies 0\n" + units),
            "error: 0 copies of the model cannot share 2 chunks evenly [schedule-copies]\n");
  EXPECT_EQ(
      check(copies + "placement 0 3 1 2\n" + units),
      "error: chunk 0 of stage 1 belongs to copy 0 of the model, but is placed at virtual stage 3, which does not "
      "[schedule-placement-copy]\n"
      "error: chunk 1 of stage 0 belongs to copy 1 of the model, but is placed at virtual stage 1, which does not "
      "[schedule-placement-copy]\n");
  EXPECT_EQ(check(copies + units),
            "error: stage 0 holds virtual stage 0 twice: copies of the model need ranks of their own "
            "[schedule-copies-meet]\n");
  EXPECT_EQ(
      check(copies + "placement 0 1 3 2\nstage 0: F0 F0.1 F1.1 B1.1 B0\nstage 1: F1 F0 B0 B1\n"),
      "error: stage 0 runs F0.1 at position 1, but microbatch 0 passes copy 0 of the model, not 1 "
      "[schedule-other-copy]\n"
      "error: stage 1 runs F1 at position 0, but microbatch 1 passes copy 1 of the model, not 0 [schedule-other-copy]\n"
      "note: and 1 more like it on stage 1\n"
      "error: stage 1 never runs F1.1, and a schedule runs each unit once on each stage [schedule-misses]\n"
      "note: add 'forward(i, 1);' where this stage is to run it\n"
      "note: and 1 more like it on stage 1\n");
  // Neither end of a copy waits for the other copy.
  EXPECT_EQ(check(copies + "placement 0 1 3 2\nstage 0: F0 B0 F1.1 B1.1\nstage 1: F0 B0 F1.1 B1.1\n"), "");
  EXPECT_EQ(check("stages 3, microbatches 2, chunks 2\ncopies 2\nplacement 0 1 2 4 5 3\n"
                  "stage 0: F0 F1.1 B1.1 B0\nstage 1: F0 F1.1 B0 B1.1\nstage 2: F0 F1.1 B0 B1.1\n"),
            "error: stage 0 shares virtual stage 1 with stages 0, 1, and others with stages 0, 2: stages that hold "
            "copies of one "
            "virtual stage must hold copies of all that they have [schedule-copies-overlap]\n");
}

TEST(CheckSchedule, CrossingStagesNeverFinish) {
  // Each stage's list is fine alone: stage 0 wants B0 before it runs F1, stage 1 wants F1 before it runs B0.
  EXPECT_EQ(check("stages 2, microbatches 2, chunks 1\nstage 0: F0 B0 F1 B1\nstage 1: F0 F1 B0 B1\n"),
            "error: the schedule never finishes: stage 0 waits with B0 at position 1 for B0 of stage 1 at position 2 "
            "[schedule-stuck]\n"
            "note: stage 1 waits with F1 at position 1 for F1 of stage 0 at position 2\n"
            "note: let stage 0 run F1 before B0, as a longer warmup of forwards does\n");
}

TEST(CheckSchedule, AStageCanWaitForItself) {
  EXPECT_EQ(check("stages 1, microbatches 1, chunks 2\nstage 0: F0.1 F0 B0.1 B0\n"),
            "error: the schedule never finishes: stage 0 waits with F0.1 at position 0 for F0 of stage 0 at position 1 "
            "[schedule-stuck]\n");
}

TEST(CheckSchedule, OnlyTheCycleIsShown) {
  // Stages 1 and 2 block each other; stage 0 merely waits for them, and stage 3 too.
  EXPECT_EQ(check("stages 4, microbatches 2, chunks 1\n"
                  "stage 0: F0 F1 B0 B1\n"
                  "stage 1: F0 B0 F1 B1\n"
                  "stage 2: F0 F1 B0 B1\n"
                  "stage 3: F0 F1 I0 W0 I1 W1\n"),
            "error: the schedule never finishes: stage 1 waits with B0 at position 1 for B0 of stage 2 at position 2 "
            "[schedule-stuck]\n"
            "note: stage 2 waits with F1 at position 1 for F1 of stage 1 at position 2\n"
            "note: let stage 1 run F1 before B0, as a longer warmup of forwards does\n");
}

/// Each unit's recv is posted from the beginning of the unit before it, or of the pair.
static RecvPosts postOneAhead(const Schedule &schedule) {
  RecvPosts posts;
  for (const auto &units : schedule.units)
    for (unsigned &post : posts.emplace_back(units.size()))
      post = std::max<ptrdiff_t>(ptrdiff_t(getPairBegin(units, &post - posts.back().data())) - 1, 0);
  return posts;
}

/// What checking the sends of a schedule prints, if all units communicate in groups of ranks, or none does.
static std::string checkSendsOf(const Schedule &schedule, RecvPosts posts, bool communicates = true) {
  std::string messages;
  llvm::raw_string_ostream os(messages);
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, os);
  EXPECT_TRUE(checkSchedule(schedule, diags)) << os.str();
  auto all = [&](unsigned, const Unit &) { return communicates; };
  bool right = postRecvs(schedule, std::move(posts), all, diags).has_value();
  EXPECT_EQ(right, os.str().empty());
  return os.str();
}
static std::string checkSendsOf(const Schedule &schedule) { return checkSendsOf(schedule, postOneAhead(schedule)); }

TEST(CheckSends, SchedulesOfTheLibraryAreSilent) {
  for (unsigned p : {1, 2, 3, 4, 8})
    for (unsigned m : {1, 2, 5, 8, 16}) {
      EXPECT_EQ(checkSendsOf(makeGPipe(p, m)), "") << p << " " << m;
      EXPECT_EQ(checkSendsOf(make1F1B(p, m)), "") << p << " " << m;
      EXPECT_EQ(checkSendsOf(makeOverlapped1F1B(p, m)), "") << p << " " << m;
      if (m % p == 0 && p > 1) {
        EXPECT_EQ(checkSendsOf(makeInterleaved(p, m, 2)), "") << p << " " << m;
      }
    }
}

TEST(CheckSends, AMessageKeepsBackThoseBehindIt) {
  Schedule schedule = *parseSchedule("stages 2, microbatches 3, chunks 1\n"
                                     "stage 0: F0 F1 F2 B2 B1 B0\n"
                                     "stage 1: F2 B2 F1 B1 F0 B0\n");
  const std::string message =
      "error: the schedule never finishes where sends wait for their recv: stage 0 has run F0 at position 0, and what "
      "it "
      "sends waits for F0 on stage 1, whose recv is posted at position 3 [schedule-sends-stuck]\n"
      "note: stage 1 waits with F2 at position 0 for F2 of stage 0 at position 2\n";
  EXPECT_EQ(checkSendsOf(schedule, postOneAhead(schedule), /*communicates=*/false), message);
  // F1's collectives stand behind F0's message, too.
  EXPECT_EQ(checkSendsOf(schedule),
            message + "note: stage 0 waits with F1 at position 1 for F0 of stage 0 at position 0\n");
  // Where all recvs are posted from the beginning nothing is held up.
  std::vector<unsigned> beginning(6, 0);
  EXPECT_EQ(checkSendsOf(schedule, {beginning, beginning}, /*communicates=*/false), "");
}

TEST(CheckSends, ARecvIsPostedAsLateAsCanBe) {
  auto getPosts = [](const char *text) {
    llvm::SourceMgr sources;
    DiagnosticEngine diags(sources, llvm::errs());
    Schedule schedule = *parseSchedule(text);
    auto never = [](unsigned, const Unit &) { return false; };
    auto posts = postRecvs(schedule, postOneAhead(schedule), never, diags);
    return posts ? *posts : RecvPosts();
  };
  // F1 goes while stage 1 runs F0: one unit later, and F0, which comes behind it, would never come.
  EXPECT_EQ(getPosts("stages 2, microbatches 2, chunks 1\n"
                     "stage 0: F1 F0 B0 B1\n"
                     "stage 1: F0 F1 B0 B1\n"),
            (RecvPosts{{0, 0, 1, 2}, {0, 0, 1, 2}}));
  EXPECT_EQ(checkSendsOf(*parseSchedule("stages 2, microbatches 2, chunks 1\n"
                                        "stage 0: F1 F0 B0 B1\n"
                                        "stage 1: F0 B0 F1 B1\n"))
                .substr(0, 5),
            "error");
  // Two chunks of three microbatches: stage 0's message of F2 waits for stage 1 to be one before F2, which waits for
  // the gradient of B0.1, which is sent behind it. When F2 is sent, at 3, stage 1 has run F0 and F0.1; when B1.1 is, at
  // 9, five units, the last of which ended at 8.
  EXPECT_EQ(getPosts("stages 2, microbatches 3, chunks 2\n"
                     "placement 0 1 3 2\n"
                     "stage 0: F0 F1 F2 F0.1 B0.1 F1.1 B1.1 B0 F2.1 B2.1 B1 B2\n"
                     "stage 1: F0 F0.1 F1 F1.1 B0.1 B0 F2 F2.1 B1.1 B1 B2.1 B2\n")[1],
            (std::vector<unsigned>{0, 0, 1, 2, 3, 4, 2, 6, 5, 8, 9, 10}));
}

TEST(CheckSends, IsLinear) { EXPECT_EQ(checkSendsOf(makeInterleaved(64, 1024, 4)), ""); }

TEST(CheckSchedule, MessagesAreWhereTheProgramAsks) {
  llvm::SourceMgr sources;
  auto buffer = llvm::MemoryBuffer::getMemBuffer("schedule s {\n  backward(0);\n}\n", "s.stg");
  const char *start = buffer->getBufferStart();
  sources.AddNewSourceBuffer(std::move(buffer), {});
  std::string text;
  llvm::raw_string_ostream os(text);
  DiagnosticEngine diags(sources, os);

  Schedule schedule = *parseSchedule("stages 1, microbatches 2, chunks 1\nstage 0: B0 F0 F1\n");
  schedule.loc = SMLoc::getFromPointer(start);
  schedule.units[0][0].loc = SMLoc::getFromPointer(start + 15);
  EXPECT_FALSE(checkSchedule(schedule, diags));
  EXPECT_NE(os.str().find("s.stg:2:3: error: stage 0 never runs B1"), std::string::npos) << os.str();
  EXPECT_NE(os.str().find("s.stg:2:3: error: stage 0 runs B0 at position 0"), std::string::npos) << os.str();
}

TEST(CheckSchedule, EveryTranspositionIsJudgedByItsDependencies) {
  // Swapping two neighbours in one list either breaks the order of one microbatch, or stops the pipeline, or is fine.
  // The judge here tries all stages until nothing moves.
  auto finishes = [](const Schedule &schedule) {
    std::vector<unsigned> next(schedule.stages, 0);
    std::vector<unsigned> forward(schedule.microbatches, 0), backward(schedule.microbatches, schedule.stages);
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned r = 0; r < schedule.stages; ++r)
        while (next[r] < schedule.units[r].size()) {
          const Unit &unit = schedule.units[r][next[r]];
          bool isForward = unit.kind == PhaseKind::Forward;
          bool ready = isForward ? forward[unit.microbatch] == r
                                 : forward[unit.microbatch] > r && backward[unit.microbatch] == r + 1;
          if (!ready)
            break;
          isForward ? ++forward[unit.microbatch] : --backward[unit.microbatch];
          ++next[r];
          moved = true;
        }
    }
    for (unsigned r = 0; r < schedule.stages; ++r)
      if (next[r] < schedule.units[r].size())
        return false;
    return true;
  };
  llvm::SourceMgr sources;
  unsigned numRight = 0, numWrong = 0;
  for (unsigned p = 1; p <= 4; ++p)
    for (unsigned m = 1; m <= 5; ++m)
      for (unsigned r = 0; r < p; ++r)
        for (unsigned i = 0; i + 1 < 2 * m; ++i) {
          Schedule schedule = make1F1B(p, m);
          std::swap(schedule.units[r][i], schedule.units[r][i + 1]);
          DiagnosticEngine diags(sources);
          bool right = finishes(schedule);
          ++(right ? numRight : numWrong);
          EXPECT_EQ(checkSchedule(schedule, diags), right) << schedule.str();
        }
  EXPECT_GT(numRight, 20u);
  EXPECT_GT(numWrong, 20u);
}
