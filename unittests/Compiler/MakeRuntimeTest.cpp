//===- MakeRuntimeTest.cpp - the runtime of a job -------------------------===//
#include "stage/Compiler/MachineRates.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr llvm::StringLiteral program = R"(
import std.transformer (Llama);
import std.parallel (megatron);
machine m { flops.bf16 = 1TFLOP/s; memory.rate = 1TB/s; level node { ranks = 2; rate = 1GB/s; } }
runtime slow { launch = 70us; tax.collective = 0.30; tax.send = 0.1; }
runtime fast extends slow { launch = 2us / 3; tax.copy = 0.2; tax.communication = 0.25; attention.kernel = 0.6; attention.tile = 64; }
job ideal {
  model = Llama(L = 1, D = 16, H = 4, KV = 2, F = 32, V = 32);
  step = train(B = 2, S = 8, optimizer = none);
  precision = bf16_mixed;
  strategy = megatron(dp = 2);
  machine = m;
}
job real extends ideal { runtime = fast; }
)";

class MakeRuntimeTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(session.load(program, "job.stg")); }

  Runtime make(const Plan &plan) {
    Result result = session.compile(plan);
    EXPECT_FALSE(result.getRefusal());
    return makeRuntime(result.getCompilation().job->runtime);
  }

  DiagnosticList ofFiles;
  Session session{{.input = "", .stdlibDir = STAGE_STDLIB}, &ofFiles};
};
} // namespace

TEST_F(MakeRuntimeTest, AJobWithoutOneHasAnIdealOne) {
  Runtime runtime = make(Plan("ideal"));
  EXPECT_EQ(runtime.describe(), "ideal");
  EXPECT_EQ(runtime.launch, 0);
  EXPECT_EQ(runtime.stepHost, 0);
  for (const Rational &tax :
       {runtime.taxOfCollectives, runtime.taxOfSends, runtime.taxOfCopies, runtime.taxOfCommunication})
    EXPECT_EQ(tax, Rational::integer(0));
  EXPECT_EQ(runtime.attentionKernel, Rational::integer(1));
}

/// An own entry replaces that of the base, and the command line both. Values are exact, launches whole picoseconds.
TEST_F(MakeRuntimeTest, TheLastOneCounts) {
  Runtime runtime = make(Plan("real"));
  EXPECT_EQ(runtime.describe(), "fast");
  EXPECT_EQ(runtime.launch, 666'666);
  EXPECT_EQ(runtime.taxOfCollectives, (Rational{3, 10}));
  EXPECT_EQ(runtime.taxOfSends, (Rational{1, 10}));
  EXPECT_EQ(runtime.taxOfCopies, (Rational{1, 5}));
  EXPECT_EQ(runtime.taxOfCommunication, (Rational{1, 4}));
  EXPECT_EQ(runtime.attentionKernel, (Rational{3, 5}));
  EXPECT_EQ(runtime.attentionTile, 64);

  Plan plan("real");
  plan.set("runtime.launch", sema::OverrideValue::expression("5us"))
      .set("tax.collective", sema::OverrideValue::read("0.2"));
  runtime = make(plan);
  EXPECT_EQ(runtime.describe(), "fast with launch = 5us, tax.collective = 0.2");
  EXPECT_EQ(runtime.launch, 5'000'000);
  EXPECT_EQ(runtime.taxOfCollectives, (Rational{1, 5}));

  runtime = make(Plan("real").set("runtime", sema::OverrideValue::expression("slow")));
  EXPECT_EQ(runtime.describe(), "slow");
  EXPECT_EQ(runtime.launch, 70'000'000);
  EXPECT_EQ(runtime.attentionKernel, Rational::integer(1));
}
