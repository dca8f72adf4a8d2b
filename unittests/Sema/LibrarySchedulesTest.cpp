//===- LibrarySchedulesTest.cpp - std.schedules against the literature ----===//
//
// The schedules of the standard library as they are written there, run for many p and m:
// bubbles and microbatches in flight are those of the published closed forms. F, B and W
// are the times of forward, whole backward and its weight part of a unit.
//
// A stage's bubble is what it waits between its first unit and its last: where a step
// begins on a stage as soon as the one before has ended there, all else is work.
//
//===----------------------------------------------------------------------===//
#include "stage/Schedule/Schedule.h"
#include "stage/Sema/Schedules.h"
#include "stage/Symbolic/Size.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
struct Times {
  int64_t F, B, W;
  UnitDurations durations() const { return {F, B - W, W, F}; }
};
/// Equal halves, and times that differ, with B - W >= F >= W.
constexpr Times equal = {1, 2, 1}, unequal = {10, 21, 9};

class LibrarySchedules : public testing::Test {
protected:
  LibrarySchedules() : diags(sources, os), program(ast, diags, {STAGE_STDLIB, {}}) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer("import std.schedules;\n", "main.stg"),
                                                 llvm::SMLoc());
    program.loadBuffer(buffer, "main.stg");
  }

  /// Nothing, and a message, if the schedule is refused.
  std::optional<Schedule> run(llvm::StringRef name, int64_t p, int64_t m,
                              llvm::ArrayRef<std::pair<const char *, int64_t>> numbers = {}) {
    messages.clear();
    auto *decl = llvm::dyn_cast_or_null<ast::ScheduleDecl>(program.lookup(*program.getMain(), name));
    SizeBinding binding;
    Obligations obligations;
    sema::Evaluator evaluator(program, sizes, binding, obligations, diags);
    std::vector<sema::NamedValue> arguments;
    for (auto [parameter, value] : numbers)
      arguments.push_back({{parameter, SMRange()}, sema::CTValue::integer(value), SMRange()});
    auto bound = sema::runSchedule(evaluator, *decl, p, m, arguments, decl->name.range);
    if (!bound)
      return std::nullopt;
    Schedule schedule;
    schedule.stages = p;
    schedule.microbatches = m;
    schedule.chunks = bound->chunks;
    schedule.units = std::move(bound->units);
    schedule.placement.resize(p * bound->chunks);
    for (int64_t r = 0; r < p; ++r)
      for (int64_t c = 0; c < bound->chunks; ++c)
        schedule.placement[c * p + r] = bound->virtualStages[r][c];
    if (!checkSchedule(schedule, diags))
      return std::nullopt;
    return schedule;
  }

  Schedule get(llvm::StringRef name, int64_t p, int64_t m,
               llvm::ArrayRef<std::pair<const char *, int64_t>> numbers = {}) {
    std::optional<Schedule> schedule = run(name, p, m, numbers);
    EXPECT_TRUE(schedule) << os.str();
    return schedule ? *schedule : Schedule();
  }

  /// The longest wait of a stage between its first unit and its last.
  static int64_t getBubble(const Schedule &schedule, const Times &times) {
    ScheduleTimes result = simulate(schedule, times.durations());
    int64_t most = 0;
    for (unsigned r = 0; r < schedule.stages; ++r) {
      int64_t end = result.start[r].back() + times.durations().of(schedule.units[r].back().kind);
      most = std::max(most, end - result.start[r].front() - result.busy[r]);
    }
    return most;
  }

  static unsigned getMostInFlight(const Schedule &schedule) {
    unsigned most = 0;
    for (unsigned r = 0; r < schedule.stages; ++r)
      most = std::max(most, countInFlight(schedule, r, HeldUntil::WeightGradient).total);
    return most;
  }

  template <typename Body> static void forAll(Body body, int64_t least, int64_t perStage) {
    for (int64_t p = 2; p <= 8; ++p)
      for (int64_t m : {least + perStage * p, least + perStage * p + 1, 2 * perStage * p, 5 * p + 3}) {
        SCOPED_TRACE("p = " + std::to_string(p) + ", m = " + std::to_string(m));
        body(p, m);
      }
  }

  std::string messages;
  llvm::raw_string_ostream os{messages};
  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ast::ASTContext ast;
  sema::Program program;
  SizeContext sizes;
};
} // namespace

TEST_F(LibrarySchedules, OneForwardOneBackward) {
  forAll([&](int64_t p, int64_t m) {
    Schedule schedule = get("one_f_one_b", p, m);
    for (const Times &times : {equal, unequal})
      EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B));
    for (unsigned r = 0; r < p; ++r)
      EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, p - r));
  }, 0, 1);
}

// Qi et al., arXiv 2401.10241: bubble (p-1)(F+B-2W), memory of 1F1B's first stage, which is p microbatches.
TEST_F(LibrarySchedules, ZeroBubbleH1) {
  forAll([&](int64_t p, int64_t m) {
    Schedule schedule = get("zb_h1", p, m);
    for (const Times &times : {equal, unequal})
      EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B - 2 * times.W));
    for (unsigned r = 0; r < p; ++r) {
      EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, p - r));
      EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, std::min(m, p));
    }
  }, 0, 1);
  // Fewer microbatches than stages run, too.
  for (int64_t m = 1; m < 8; ++m)
    get("zb_h1", 8, m);
}

// There: bubble (p-1)(F+B-3W), nothing if F = B - W = W; 2p - 1 microbatches.
TEST_F(LibrarySchedules, ZeroBubbleH2) {
  forAll([&](int64_t p, int64_t m) {
    Schedule schedule = get("zb_h2", p, m);
    for (const Times &times : {equal, unequal})
      EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B - 3 * times.W));
    for (unsigned r = 0; r < p; ++r) {
      EXPECT_EQ(countInFlight(schedule, r).total, 2 * (p - r) - 1);
      EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, 2 * p - 1);
    }
  }, -1, 2);
  EXPECT_FALSE(run("zb_h2", 4, 6));
  EXPECT_NE(os.str().find("ZB-H2 needs 2p - 1 = 7 microbatches or more to fill 4 stages, not 6"), std::string::npos) << os.str();
}
