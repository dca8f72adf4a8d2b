//===- SessionTest.cpp - plans of one program -----------------------------===//
//
// A job on dp * tp ranks with 16 sequences per step. Its model FLOPs do not depend on the plan; its ranks are dp * tp,
// and its heads (KV = 4) split over 2 and 4 ranks, and not over 3.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/Session.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <mutex>
#include <set>

using namespace stage;

namespace {
constexpr llvm::StringLiteral program = R"(
import std.transformer (Llama);
import std.parallel (megatron);
config small for Llama { L = 4; D = 64; H = 8; KV = 4; F = 256; V = 512; }
job pretrain {
  model = Llama(small);
  step = train(B = 16, S = 64, microbatch = 1, optimizer = adamw);
  precision = bf16_mixed;
  strategy = megatron(dp = 2, tp = 4);
}
job other extends pretrain { strategy = megatron(dp = 4); }
)";

class SessionTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(session.load(program, "job.stg")); }

  DiagnosticList ofFiles;
  Session session{{.input = "", .stdlibDir = STAGE_STDLIB}, &ofFiles};
};
} // namespace

TEST_F(SessionTest, CompilesPlanAfterPlan) {
  EXPECT_EQ(session.listJobs(), (std::vector<std::string>{"pretrain", "other"}));
  std::optional<__int128> flops, peak;
  for (int64_t tp : {1, 2, 4}) {
    Result result = session.compile(Plan("pretrain").set("tp", tp));
    ASSERT_TRUE(result.getReport()) << result.getRefusal()->text;
    EXPECT_FALSE(result.getRefusal());
    EXPECT_EQ(result.getReport()->ranks, 2 * tp);
    EXPECT_EQ(result.getReport()->flops.getModel(), flops.value_or(result.getReport()->flops.getModel()));
    EXPECT_TRUE(!peak || result.getReport()->getLargestStage().peak.getTotal() < *peak);
    EXPECT_EQ(result.getCompilation().program->stages.size(), 1u);
    flops = result.getReport()->flops.getModel();
    peak = result.getReport()->getLargestStage().peak.getTotal();
  }
  EXPECT_EQ(session.compile(Plan("other")).getReport()->ranks, 4);
  EXPECT_TRUE(ofFiles.all.empty());
}

TEST_F(SessionTest, RefusalIsAValue) {
  std::optional<Diagnostic> refusal;
  {
    Result result = session.compile(Plan("pretrain").set("tp", 3));
    EXPECT_FALSE(result.getReport());
    ASSERT_TRUE(result.getRefusal());
    refusal = *result.getRefusal();
  }
  EXPECT_EQ(refusal->code, "axis-does-not-fit");
  EXPECT_EQ(refusal->file, "-D tp"); // the plan's own value
  EXPECT_EQ(std::pair(refusal->line, refusal->column), std::pair(1u, 1u));
  ASSERT_EQ(refusal->notes.size(), 1u); // the rule of the library
  EXPECT_EQ(refusal->notes.front().severity, Severity::Note);
  // It concerns no other plan.
  EXPECT_TRUE(session.compile(Plan("pretrain")).getReport());
  EXPECT_TRUE(ofFiles.all.empty());
}

TEST_F(SessionTest, ValuesHaveTypes) {
  auto countRanks = [&](const Plan &plan) {
    Result result = session.compile(plan);
    return result.getReport() ? result.getReport()->ranks : 0;
  };
  EXPECT_EQ(countRanks(Plan("pretrain").set("tp", sema::OverrideValue::expression("min(2, 4)"))), 4);
  EXPECT_EQ(countRanks(Plan("pretrain").set("tp", 1).set("tp", 2)), 4); // the last one counts
  auto sends = [&](bool sequenceParallel) { // all_gather and reduce_scatter of sequences, or all_reduce
    Result result = session.compile(Plan("pretrain").set("sequence_parallel", sequenceParallel));
    return llvm::any_of(result.getReport()->stages.front().traffic,
                        [](const TrafficReport &traffic) { return traffic.kind == OpKind::ReduceScatter; });
  };
  EXPECT_TRUE(sends(true));
  EXPECT_FALSE(sends(false));
  // An integer is none of the values that `sequence_parallel` may have, nor is a text a number of sequences.
  EXPECT_EQ(session.compile(Plan("pretrain").set("sequence_parallel", 1)).getRefusal()->code, "wrong-kind");
  EXPECT_EQ(session.compile(Plan("pretrain").set("B", sema::OverrideValue::string("16"))).getRefusal()->code,
            "not-an-integer");
  Result unknown = session.compile(Plan("pretrain").set("td", 4));
  EXPECT_EQ(unknown.getRefusal()->code, "unknown-define");
  EXPECT_EQ(unknown.getRefusal()->file, "-D td");
}

TEST_F(SessionTest, ThreadsGiveTheSameResults) {
  auto getPlan = [](size_t number) { return Plan("pretrain").set("tp", number % 4 + 1).set("dp", 1 << number / 4); };
  constexpr size_t count = 16;
  std::vector<std::string> alone(count), together(count);
  auto describe = [](const Result &result) {
    return result.getReport() ? std::to_string(result.getReport()->ranks) + " " +
                                    std::to_string(int64_t(result.getReport()->getLargestStage().peak.getTotal()))
                              : result.getRefusal()->text;
  };
  for (size_t number = 0; number < count; ++number)
    alone[number] = describe(session.compile(getPlan(number)));
  std::mutex mutex;
  session.compileAll(count, 3, getPlan, [&](size_t number, Result result) {
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT_EQ(together[number], "") << "compiled twice";
    together[number] = describe(result);
  });
  EXPECT_EQ(together, alone);
}

TEST(SessionFiles, FaultsGoToTheConsumer) {
  DiagnosticList list;
  Session session({.input = "", .stdlibDir = STAGE_STDLIB}, &list);
  EXPECT_FALSE(session.load("job pretrain { model = Nowhere(); }", "bad.stg"));
  ASSERT_FALSE(list.all.empty());
  EXPECT_EQ(list.all.front().file, "bad.stg");
  EXPECT_EQ(list.all.front().code, "unknown-name");
}

/// What plans have in common is kept: a plan that differs in one of the values that decide it has its own.
TEST(SessionFiles, KeptBindingsAreOfTheirValues) {
  constexpr llvm::StringLiteral timed = R"(
machine own {
  flops.bf16 = 100GFLOP/s;
  memory.capacity = 80GB;
  memory.rate = 1TB/s;
  level node { ranks = 8; rate = 100GB/s; }
}
runtime some { launch = 5us; }
job timed extends pretrain {
  machine = own;
  runtime = some;
  strategy = megatron(pp = 2, tp = 2, pipeline_schedule = one_f_one_b);
}
)";
  auto value = [](llvm::StringRef text) { return sema::OverrideValue::read(text); };
  const std::vector<std::pair<llvm::StringRef, llvm::StringRef>> changes = {
      {"machine.flops.bf16", "50GFLOP/s"},
      {"machine.flops.bf16", "25GFLOP/s"},
      {"machine.memory.rate", "100GB/s"},
      {"machine.node.rate", "1GB/s"},
      {"runtime.launch", "100us"},
      {"runtime.tax.collective", "0.5"},
      {"strategy.pp", "4"},
      {"step.microbatch", "2"},
      {"strategy.pipeline_schedule", "gpipe"},
      {"strategy.pipeline_schedule", "interleaved(v = 2)"},
  };
  auto load = [&](Session &session) {
    return session.load(("import std.schedules;" + program + timed).str(), "job.stg");
  };
  auto measure = [](Session &session, const Plan &plan) -> std::string {
    Result result = session.compile(plan);
    if (!result.getReport())
      return result.getRefusal()->text;
    int64_t peak = int64_t(result.getReport()->getLargestStage().peak.getTotal());
    return std::to_string(result.getReport()->step->time.step) + " " + std::to_string(peak);
  };
  Session session({.input = "", .stdlibDir = STAGE_STDLIB}, nullptr);
  ASSERT_TRUE(load(session));
  std::set<std::string> different = {measure(session, Plan("timed"))};
  for (const auto &[name, text] : changes) {
    Plan plan = Plan("timed").set(name, value(text));
    std::string together = measure(session, plan);
    Session own({.input = "", .stdlibDir = STAGE_STDLIB}, nullptr);
    ASSERT_TRUE(load(own));
    EXPECT_EQ(together, measure(own, plan)) << name.str() << " = " << text.str();
    EXPECT_TRUE(different.insert(together).second) << name.str() << " = " << text.str() << " changes nothing";
  }
}

/// A table with a fault is read again, and one without is not.
TEST(SessionFiles, TablesAreReadOnce) {
  llvm::SmallString<128> root;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("session-tables", root));
  std::string table = (root + "/ratio.csv").str();
  auto write = [&](llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(table, error) << text;
    ASSERT_FALSE(error);
  };
  DiagnosticList list;
  Session session({.input = "", .stdlibDir = STAGE_STDLIB}, &list);
  ASSERT_TRUE(session.load((program + R"(
machine measured {
  flops.bf16 = 100TFLOP/s;
  memory.capacity = 80GB;
  memory.rate = 1TB/s;
  contraction.bf16 = table("ratio.csv");
  level node { ranks = 8; rate = 100GB/s; }
}
job timed extends pretrain { machine = measured; }
)")
                               .str(),
                           (root + "/job.stg").str()));
  auto getStep = [&]() -> Ticks {
    Result result = session.compile(Plan("timed"));
    return result.getReport() ? result.getReport()->step->time.step : -1;
  };
  EXPECT_EQ(getStep(), -1); // there is none
  write("m,n,k,ratio\n64,64,64,none\n");
  EXPECT_EQ(getStep(), -1);
  write("m,n,k,ratio\n64,64,64,2\n");
  Ticks step = getStep();
  EXPECT_GT(step, 0);
  write("m,n,k,ratio\n64,64,64,4\n");
  EXPECT_EQ(getStep(), step);
  llvm::sys::fs::remove_directories(root);
}
