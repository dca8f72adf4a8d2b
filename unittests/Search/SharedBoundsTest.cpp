//===- SharedBoundsTest.cpp - plans that compute alike have one bound -----===//
//
// A search leaves a plan out by the bound of another one that computes the same for a microbatch. Random plans that
// differ in state, in when gradients are reduced, and in all else that a key may have left out: those with one key have
// one bound, and no step is shorter.
//
//===----------------------------------------------------------------------===//
#include "stage/Search/SharedBounds.h"
#include "stage/Compiler/Compilation.h"
#include "stage/Compiler/Session.h"
#include "gtest/gtest.h"
#include <random>

using namespace stage;

namespace {
constexpr llvm::StringLiteral program = R"(
import std.transformer (Llama);
import std.parallel (megatron);
import std.schedules;
import std.machines (h100);
import std.runtimes (megatron_core_2606);
config small for Llama { L = 8; D = 256; H = 8; KV = 4; F = 1Ki; V = 512; }
job pretrain {
  model = Llama(small);
  step = train(B = 32, S = 256, microbatch = 1, optimizer = adamw);
  precision = bf16_mixed;
  machine = h100;
  runtime = megatron_core_2606;
  strategy = megatron(pp = 2, dp = 2, tp = 2);
}
)";

/// Values of a name, as text. Those of the first names leave the key as it is.
const std::vector<std::pair<std::string, std::vector<std::string>>> choices = {
    {"zero", {"0", "1", "2", "3"}},
    {"overlap", {"none", "true", "false"}},
    {"bucket", {"none", "1MiB"}},
    {"reduce_type", {"none", "none", "bf16"}},
    {"norms_apart", {"false", "false", "true"}},
    {"pp", {"1", "2", "4"}},
    {"tp", {"1", "2"}},
    {"tp_overlap", {"false", "false", "true"}},
    {"microbatch", {"1", "2"}},
    {"recompute", {"none", "selective", "full"}},
    {"split", {"none", "balanced(flops)", "balanced(memory)"}},
    {"pipeline_schedule", {"one_f_one_b", "interleaved(v = 2)", "zb_h1"}},
    {"regather", {"true", "false"}},
};
constexpr size_t numOfState = 5, schedule = 11;
} // namespace

TEST(SharedBounds, PlansThatComputeAlikeHaveOneBound) {
  SessionOptions options{.input = "", .stdlibDir = STAGE_STDLIB};
  DiagnosticList messages;
  Session session(options, &messages);
  ASSERT_TRUE(session.load(program, "job.stg"));
  std::mt19937 random(39);
  std::vector<size_t> digits(choices.size());
  SharedBounds known;
  size_t numShared = 0, numCompiled = 0;
  for (unsigned number = 0; number != 400; ++number) {
    // Four plans that differ in state, four with another schedule, then another value elsewhere.
    size_t name = number % 4 ? random() % numOfState : number % 8 ? schedule : random() % choices.size();
    digits[name] = random() % choices[name].second.size();
    Plan plan("pretrain");
    std::string text;
    for (size_t i = 0; i != choices.size(); ++i) {
      const std::string &value = choices[i].second[digits[i]];
      plan.set(choices[i].first, sema::OverrideValue::expression(value));
      text += choices[i].first + "=" + value + " ";
    }
    DiagnosticList own;
    DiagnosticEngine diags(session.getSources(), &own);
    Compilation c(session, diags);
    c.models = &session.getModels();
    if (!bindPlan(c, plan) || !elaborate(c, plan))
      continue;
    std::optional<GraphInput> input = SharedBounds::makeInput(*c.graph);
    PipelineInfo pipeline = c.graph->pipeline;
    if (!runMiddle(c))
      continue;
    std::optional<StepBound> bound = makeStepBound(c);
    ASSERT_TRUE(bound) << text;
    ++numCompiled;
    Ticks least = bound->find(BoundedOps::OfMicrobatches);
    EXPECT_LE(least, bound->find()) << text;
    EXPECT_GT(least, 0) << text;
    std::optional<StepReport> step = makeStepReport(c);
    ASSERT_TRUE(step) << text;
    EXPECT_LE(bound->find(), step->time.step) << text;
    if (!input)
      continue;
    if (std::optional<Ticks> shared = known.find(*input, pipeline)) {
      EXPECT_EQ(*shared, least) << text;
      ++numShared;
    } else {
      known.add(std::move(*input), std::move(pipeline), least);
    }
  }
  EXPECT_GT(numCompiled, 200u);
  EXPECT_GT(numShared, 100u);
}
