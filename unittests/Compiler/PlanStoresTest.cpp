//===- PlanStoresTest.cpp - plans with and without others before them -----===//
//
// What a session keeps of a plan may not change another one. Plans of two layers per virtual stage and more are
// compiled in random order in one session, and each alone: programs, messages, and what a step costs are the same.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/PlanStores.h"
#include "stage/Compiler/Session.h"
#include "stage/IR/text/Text.h"
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
config small for Llama { L = 8; D = 64; H = 8; KV = 4; F = 256; V = 512; }
job pretrain {
  model = Llama(small);
  step = train(B = 32, S = 64, microbatch = 1, optimizer = adamw);
  precision = bf16_mixed;
  machine = h100;
  runtime = megatron_core_2606;
  strategy = megatron(pp = 2, dp = 2, tp = 2);
}
)";

/// Values of a name, as text.
struct Choice {
  std::string name;
  std::vector<std::string> values;
};

/// The neighbours of a plan, and their neighbours: all values that a key may have left out.
const std::vector<Choice> choices = {
    {"pp", {"1", "2", "4"}},
    {"tp", {"1", "2"}},
    {"dp", {"1", "2"}},
    {"microbatch", {"1", "2"}},
    {"S", {"64", "128"}},
    {"zero", {"0", "1", "2", "3"}},
    {"recompute", {"none", "selective", "full"}},
    {"recompute_layers", {"none", "1", "2"}},
    {"overlap", {"none", "true", "false"}},
    {"split", {"none", "balanced(flops)", "balanced(memory)"}},
    {"pipeline_schedule", {"one_f_one_b", "gpipe", "interleaved(v = 2)", "zb_h1", "zb_v"}},
    {"precision", {"bf16_mixed", "fp32"}},
};

/// All that a session says of a plan.
std::string describe(Session &session, const Plan &plan) {
  Result result = session.compile(plan);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Diagnostic &message : result.getDiagnostics())
    os << message.file << ':' << message.line << ':' << message.column << ": " << message.text << '\n';
  const Report *report = result.getReport();
  if (!report)
    return os.str();
  const Program &made = *result.getCompilation().program;
  print(os, *made.graph);
  for (const StageProgram &stage : made.stages) {
    for (const Unit &unit : stage.units)
      os << unit << ' ';
    os << "posts";
    for (unsigned post : stage.posts)
      os << ' ' << post;
    os << '\n';
  }
  for (const StageMemory &stage : report->memory.stages)
    os << int64_t(stage.peak.getTotal()) << '\n';
  os << report->step->time.step << '\n';
  return os.str();
}
} // namespace

TEST(PlanStores, PlansAreThoseOfSessionsOfTheirOwn) {
  SessionOptions options{.input = "", .stdlibDir = STAGE_STDLIB};
  DiagnosticList messages;
  Session shared(options, &messages);
  ASSERT_TRUE(shared.load(program, "job.stg"));
  std::mt19937 random(36);
  std::vector<size_t> digits(choices.size());
  size_t numCompiled = 0;
  for (unsigned number = 0; number != 150; ++number) {
    // Another value of one or two names, so that many keys are alike.
    for (unsigned i = 0; i != 1 + number % 2; ++i) {
      size_t name = random() % choices.size();
      digits[name] = random() % choices[name].values.size();
    }
    Plan plan("pretrain");
    std::string text;
    for (size_t name = 0; name != choices.size(); ++name) {
      const std::string &value = choices[name].values[digits[name]];
      plan.set(choices[name].name, sema::OverrideValue::expression(value));
      text += choices[name].name + "=" + value + " ";
    }
    Session own(options, &messages);
    ASSERT_TRUE(own.load(program, "job.stg"));
    std::string expected = describe(own, plan);
    EXPECT_EQ(describe(shared, plan), expected) << text;
    numCompiled += llvm::StringRef(expected).contains("posts");
  }
  EXPECT_GT(numCompiled, 50u);
  EXPECT_GT(shared.getStores().graphs.getNumShared(), 10u);
}
