//===- ClosedFormsTest.cpp - known schedules against the literature -------===//
//
// Bubbles and microbatches in flight of the published schedules, for every p and m in
// 1..8. F, B and W are the times of forward, whole backward and its weight part.
//
//===----------------------------------------------------------------------===//
#include "Schedules.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
struct Times {
  int64_t F, B, W;
  int64_t of(PhaseKind kind) const {
    return kind == PhaseKind::Backward                       ? B
           : kind == PhaseKind::BackwardInput                ? B - W
           : kind == PhaseKind::BackwardWeight               ? W
           : isForward(kind) || kind == PhaseKind::Recompute ? F
                                                             : 0;
  }
  ScheduleTimes run(const Schedule &schedule) const {
    return simulate(schedule, [&](UnitRef ref) { return of(schedule.get(ref).kind); });
  }
};
const Times allTimes[] = {{1, 2, 1}, {2, 3, 1}, {10, 21, 9}, {3, 3, 1}};

void expectCorrect(const Schedule &schedule) {
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, llvm::errs());
  EXPECT_TRUE(checkSchedule(schedule, diags)) << schedule.str();
}

/// Every stage idles for `bubble`, and works m times for F + B.
void expectBubble(const Schedule &schedule, const Times &times, int64_t bubble) {
  ScheduleTimes result = times.run(schedule);
  int64_t work = int64_t(schedule.microbatches) * schedule.chunks * (times.F + times.B);
  EXPECT_EQ(result.makespan, work + bubble) << schedule.str();
  for (unsigned r = 0; r < schedule.stages; ++r) {
    EXPECT_EQ(result.busy[r], work);
    EXPECT_EQ(result.getBubble(r), bubble);
  }
}

template <typename Body> void forAll(Body body) {
  for (unsigned p = 1; p <= 8; ++p)
    for (unsigned m = 1; m <= 8; ++m) {
      SCOPED_TRACE("p = " + std::to_string(p) + ", m = " + std::to_string(m));
      body(p, m);
    }
}
} // namespace

TEST(ClosedForms, GPipe) {
  forAll([](unsigned p, unsigned m) {
    Schedule schedule = makeGPipe(p, m);
    expectCorrect(schedule);
    for (unsigned r = 0; r < p; ++r)
      EXPECT_EQ(countInFlight(schedule, r).total, m);
    for (const Times &times : allTimes) {
      // The bubble is (p-1)/(m+p-1) of the whole.
      ScheduleTimes result = times.run(schedule);
      EXPECT_EQ(result.getBubble(0) * (m + p - 1), result.makespan * (p - 1));
      expectBubble(schedule, times, (p - 1) * (times.F + times.B));
    }
  });
}

TEST(ClosedForms, OneFOneB) {
  forAll([](unsigned p, unsigned m) {
    Schedule schedule = make1F1B(p, m);
    expectCorrect(schedule);
    for (unsigned r = 0; r < p; ++r) {
      InFlight inFlight = countInFlight(schedule, r);
      EXPECT_EQ(inFlight.total, std::min(m, p - r));
      EXPECT_EQ(inFlight.perChunk, std::vector<unsigned>{std::min(m, p - r)});
      EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, inFlight.total);
    }
    for (const Times &times : allTimes)
      expectBubble(schedule, times, (p - 1) * (times.F + times.B));
  });
}

TEST(ClosedForms, OverlappedOneFOneB) {
  forAll([](unsigned p, unsigned m) {
    Schedule schedule = makeOverlapped1F1B(p, m);
    expectCorrect(schedule);
    for (unsigned r = 0; r < p; ++r) {
      unsigned before = std::min(m, 2 * (p - r) - 1);
      EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, before + 1));
    }
    // A pair takes as long as both of its units, and what they send leaves behind them.
    for (const Times &times : allTimes)
      expectBubble(schedule, times, (p - 1) * (times.F + times.B));
  });
}

TEST(ClosedForms, Interleaved) {
  for (unsigned v : {1, 2, 3, 4})
    forAll([&](unsigned p, unsigned m) {
      if (m % p != 0)
        return;
      Schedule schedule = makeInterleaved(p, m, v);
      expectCorrect(schedule);
      // In flight on the first stage p + (p-1)/v whole stages, of v chunks each, if there are as many microbatches.
      EXPECT_EQ(countInFlight(schedule, 0).total, std::min(m * v, p * v + p - 1));
      // A chunk takes 1/v of a stage's time, so that (p-1)(F+B)/v of whole stages is this in chunks. With v = 1 the
      // deeper warmup gains nothing.
      for (const Times &times : allTimes)
        expectBubble(schedule, times, (p - 1) * (times.F + times.B));
    });
}

TEST(ClosedForms, ZeroBubbleH1) {
  forAll([](unsigned p, unsigned m) {
    Schedule schedule = makeZBH1(p, m);
    expectCorrect(schedule);
    for (unsigned r = 0; r < p; ++r)
      EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, p - r));
    // Derived for a steady state, hence m >= p, and for three parts of equal length.
    if (m < p)
      return;
    for (int64_t part : {1, 5})
      expectBubble(schedule, {part, 2 * part, part}, (p - 1) * (part + 2 * part - 2 * part));
  });
}

TEST(ClosedForms, Vee) {
  forAll([](unsigned p, unsigned m) {
    Schedule schedule = makeVee(p, m);
    expectCorrect(schedule);
    // One microbatch goes down and up the V, and back, before the next one starts.
    for (unsigned r = 0; r < p; ++r) {
      EXPECT_EQ(countInFlight(schedule, r).total, 2u);
      EXPECT_EQ(countInFlight(schedule, r).perChunk, (std::vector<unsigned>{1, 1}));
    }
    EXPECT_EQ(schedule.getVirtualStage(1, 0), 2 * p - 1);
  });
}

TEST(ClosedForms, TopologicalOrderRespectsEverything) {
  auto check = [](const Schedule &schedule) {
    std::vector<UnitRef> order = topologicalOrder(schedule);
    size_t numUnits = 0;
    for (const auto &units : schedule.units)
      numUnits += units.size();
    ASSERT_EQ(order.size(), numUnits);
    std::vector<unsigned> next(schedule.stages, 0);
    // Which virtual stages a microbatch has passed, forward and backward.
    std::vector<unsigned> forward(schedule.microbatches, 0);
    std::vector<unsigned> backward(schedule.microbatches, schedule.getNumVirtualStages());
    for (UnitRef ref : order) {
      ASSERT_EQ(ref.position, next[ref.stage]++) << schedule.str();
      const Unit &unit = schedule.get(ref);
      unsigned virtualStage = schedule.getVirtualStage(unit.chunk, ref.stage);
      if (unit.kind == PhaseKind::Forward) {
        ASSERT_EQ(virtualStage, forward[unit.microbatch]++) << schedule.str();
      } else if (unit.kind != PhaseKind::BackwardWeight) {
        ASSERT_EQ(virtualStage, --backward[unit.microbatch]) << schedule.str();
      }
    }
  };
  forAll([&](unsigned p, unsigned m) {
    check(makeGPipe(p, m));
    check(make1F1B(p, m));
    check(makeZBH1(p, m));
    check(makeVee(p, m));
    if (m % p == 0)
      check(makeInterleaved(p, m, 3));
  });
}

TEST(ClosedForms, TopologicalOrderByLevelThenStage) {
  std::vector<UnitRef> expected = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {1, 2}, {1, 3}, {0, 3}};
  EXPECT_EQ(topologicalOrder(make1F1B(2, 2)), expected);
}

TEST(ClosedForms, UnevenStages) {
  // Stage 1 is three times slower: stage 0 waits for it.
  Schedule schedule = make1F1B(2, 4);
  ScheduleTimes times = simulate(schedule, [](UnitRef ref) { return ref.stage == 0 ? 1 : 3; });
  // F0 of stage 0, then stage 1 without a gap, then the last backward of stage 0.
  EXPECT_EQ(times.makespan, 1 + 4 * (3 + 3) + 1);
  EXPECT_EQ(times.getBubble(1), 2);
  EXPECT_EQ(times.getBubble(0), times.makespan - 8);
  EXPECT_EQ(times.start[1], (std::vector<int64_t>{1, 4, 7, 10, 13, 16, 19, 22}));
}

TEST(ClosedForms, LargeScheduleIsLinear) {
  Schedule schedule = makeInterleaved(64, 1024, 4);
  expectCorrect(schedule);
  expectBubble(schedule, {1, 2, 1}, 63 * 3);
}
