//===- CompiledWalkTest.cpp - the longest path over units -----------------===//
#include "CompiledWalk.h"
#include "ProgramTest.h"
#include "stage/Machine/Runtime.h"

using namespace stage;

namespace {
/// Stages in 1F1B.
class CompiledWalkTest : public ProgramTest {
protected:
  static std::string listUnits(unsigned microbatches, unsigned warmup) {
    std::string units;
    for (unsigned forward = 0, backward = 0; backward < microbatches;) {
      bool goesForward = forward < microbatches && forward - backward <= warmup;
      units += (units.empty() ? "" : " ") + std::string(goesForward ? "F" : "B") +
               std::to_string(goesForward ? forward : backward);
      ++(goesForward ? forward : backward);
    }
    return units;
  }

  /// Each backward runs interleaved with the next forward.
  static std::string listPairs(unsigned microbatches, unsigned warmup) {
    std::string units;
    for (unsigned forward = 0; forward < warmup; ++forward)
      units += "F" + std::to_string(forward) + " ";
    for (unsigned backward = 0; backward < microbatches; ++backward) {
      units += (backward ? " B" : "B") + std::to_string(backward);
      if (warmup + backward < microbatches)
        units += "|F" + std::to_string(warmup + backward);
    }
    return units;
  }

  void buildWith(unsigned microbatches, unsigned layers, unsigned stages = 2, bool inPairs = false) {
    std::string count = std::to_string(layers), split, units;
    for (unsigned stage = 0; stage < stages; ++stage) {
      split += (stage ? ", " : "") + std::to_string(layers / stages);
      units +=
          "    units \"" +
          (inPairs ? listPairs(microbatches, 2 * (stages - stage) - 1) : listUnits(microbatches, stages - 1 - stage)) +
          "\";\n";
    }
    build("graph Chain {\n  dim B;\n  mesh (pp = " + std::to_string(stages) +
          ", dp = 4);\n  bind B = 4096;\n  microbatches " + std::to_string(microbatches) +
          ";\n  pipeline layers over pp {\n    split " + split + ";\n" + units + "  }\n" + R"(
  optimizer sgd { state m: f32; flops = volume; }
  op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
  op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);
  op loss(x: [b]) -> (result: [] = sum[b](x[b]));
  op loss.dx[b](dy: []) -> (result: [b] = dy[]);
  forward {
    %x0 = input : f32[B] {_};
    %r = repeat layers [)" +
          count + R"(] loop 0 (%x = %x0 : f32[B] {_}) : f32[B] {_} do {
      %g = param : f32[B] {_};
      %y = scale(%x, %g) : f32[B] {_};
      yield %y;
    }
    %l = loss(%r) : f32[];
    return %l;
  }
  backward {
    %one = constant 1 : f32[];
    %dr = loss.dx(%one) [b = B] : f32[B] {_};
    %dx0 = repeat layers [)" +
          count + R"(] loop 0 reverse (%dy = %dr : f32[B] {_}) : f32[B] {_} do {
      %dg = scale.dx(%dy, %x) : f32[B] {_};
      %ag = accumulate(%dg, %g) : f32[B] {_};
      %dx = scale.dx(%dy, %g) : f32[B] {_};
      yield %dx;
    }
  }
  step {
    repeat layers [)" +
          count + R"(] loop 0 () do {
      update(%g, %ag);
      yield;
    }
  }
})");
  }

  static Machine makeMachine(int64_t rate = 1'000'000'000) {
    MachineRates rates{1'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000};
    rates.name = "small";
    rates.type = "f32";
    rates.latency = 1'000;
    rates.levels = {{"all", 64, rate, {1, 1}, 1'000}};
    return Machine(rates);
  }

  /// What it costs to find the time of the step, which must be that of the walk from task to task.
  CompiledWalk::Counts count(const Runtime &runtime = Runtime(), const Machine &machine = makeMachine()) {
    TimedPart part{program.get(), machine, runtime};
    CompiledWalk walk(part, TaskOptions(), diags);
    EXPECT_EQ(walk.run(), CompiledWalk::Outcome::Done) << messages.str();
    std::optional<TimeReport> tasks = findTimeReportByTask({program.get()}, part.machine, runtime, diags);
    EXPECT_EQ(walk.getStep(), tasks ? tasks->step : -1);
    return walk.getCounts();
  }
};

TEST_F(CompiledWalkTest, EightTimesAsManyMicrobatchesAreNotMadeOrEvaluated) {
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 4));
  CompiledWalk::Counts few = count();
  ASSERT_NO_FATAL_FAILURE(buildWith(512, 4));
  CompiledWalk::Counts many = count();
  EXPECT_EQ(few.placed, 2u * (2 * 64 + 1));
  EXPECT_EQ(many.placed, 2u * (2 * 512 + 1));
  EXPECT_EQ(few.made, many.made);
  EXPECT_EQ(few.evaluated, many.evaluated);
}

/// F, B and the step of both stages have 3, 5 and 2, and 4, 6 and 2 tasks. A unit is made where there is something
/// before it that was not there before: each template three times at most, however many kinds its units are of.
TEST_F(CompiledWalkTest, KindsThatDifferInWhatTheyWaitForAreNotMade) {
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 4));
  EXPECT_LE(count().made, 3u * (3 + 5 + 2 + 4 + 6 + 2));
}

/// All of them take the same beside each other.
TEST_F(CompiledWalkTest, EightTimesAsManyMicrobatchesAreNotCharged) {
  Runtime runtime;
  runtime.launch = 10'000'000;
  runtime.taxOfCollectives = *Rational::make(3, 10);
  runtime.taxOfSends = *Rational::make(1, 5);
  runtime.taxOfCommunication = *Rational::make(1, 7);
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 4));
  CompiledWalk::Counts few = count(runtime), untaxed = count();
  ASSERT_NO_FATAL_FAILURE(buildWith(512, 4));
  CompiledWalk::Counts many = count(runtime);
  EXPECT_EQ(many.placed, 2u * (2 * 512 + 1));
  EXPECT_EQ(few.made, many.made);
  EXPECT_EQ(few.charged, many.charged);
  EXPECT_EQ(few.evaluated, many.evaluated);
  EXPECT_GT(few.charged, 0u);
  EXPECT_EQ(untaxed.charged, 0u);
}

/// Stages between the first and the last one have alike templates. Those that fill differ in what comes before.
TEST_F(CompiledWalkTest, TwiceAsManyEqualStagesAreNotMadeOrCharged) {
  Runtime runtime;
  runtime.launch = 10'000'000;
  runtime.taxOfCollectives = *Rational::make(3, 10);
  runtime.taxOfSends = *Rational::make(1, 5);
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 32, 8));
  CompiledWalk::Counts few = count(runtime);
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 64, 16));
  CompiledWalk::Counts many = count(runtime);
  EXPECT_EQ(many.placed, 16u * (2 * 64 + 1));
  EXPECT_LE(many.made * 10, few.made * 11);
  EXPECT_LE(many.charged * 10, few.charged * 11);
}

/// A pair is placed as one unit, with what its tasks take beside those of other pairs.
TEST_F(CompiledWalkTest, EightTimesAsManyPairsAreNotMadeOrEvaluated) {
  Runtime runtime;
  runtime.launch = 10'000'000;
  runtime.taxOfSends = *Rational::make(1, 5);
  runtime.taxOfCommunication = *Rational::make(1, 7);
  for (const Runtime &taken : {Runtime(), runtime}) {
    ASSERT_NO_FATAL_FAILURE(buildWith(64, 4, 2, /*inPairs=*/true));
    CompiledWalk::Counts few = count(taken);
    ASSERT_NO_FATAL_FAILURE(buildWith(512, 4, 2, /*inPairs=*/true));
    CompiledWalk::Counts many = count(taken);
    EXPECT_EQ(few.placed, 64u + 3 + 1 + 64 + 1 + 1);
    EXPECT_EQ(many.placed, 512u + 3 + 1 + 512 + 1 + 1);
    EXPECT_EQ(few.made, many.made);
    EXPECT_EQ(few.charged, many.charged);
    EXPECT_EQ(few.evaluated, many.evaluated);
  }
}

/// Messages that last longer than a pair: what runs beside them is of their own pair alone.
TEST_F(CompiledWalkTest, PairsOneBehindTheOtherDoNotMeet) {
  Runtime runtime;
  runtime.taxOfCommunication = *Rational::make(1, 2);
  ASSERT_NO_FATAL_FAILURE(buildWith(64, 4, 2, /*inPairs=*/true));
  count(runtime, makeMachine(1'000'000));
}

TEST_F(CompiledWalkTest, OfEqualLayersThreeAreMade) {
  ASSERT_NO_FATAL_FAILURE(buildWith(8, 40));
  CompiledWalk::Counts few = count();
  ASSERT_NO_FATAL_FAILURE(buildWith(8, 400));
  CompiledWalk::Counts many = count();
  EXPECT_EQ(few.made, many.made);
}
} // namespace
