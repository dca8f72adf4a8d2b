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
#include <map>

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
/// Equal halves, and times that differ, with B - W >= F >= W.
constexpr Times equal = {1, 2, 1}, unequal = {10, 21, 9};

class LibrarySchedules : public testing::Test {
protected:
  LibrarySchedules() : diags(sources, os), program(ast, diags, {STAGE_STDLIB, {}}) {
    unsigned buffer = sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer("import std.schedules;\n", "main.stg"), llvm::SMLoc());
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
    schedule.copies = bound->copies;
    schedule.units = std::move(bound->units);
    schedule.placement = bound->getPlacement();
    if (!checkSchedule(schedule, diags))
      return std::nullopt;
    return schedule;
  }

  Schedule get(llvm::StringRef name, int64_t p, int64_t m,
               llvm::ArrayRef<std::pair<const char *, int64_t>> numbers = {}) {
    std::optional<Schedule> schedule = run(name, p, m, numbers);
    if (!schedule)
      throw std::runtime_error(os.str()); // which fails the test
    return *schedule;
  }

  /// The longest wait of a stage between its first unit and its last.
  static int64_t getBubble(const Schedule &schedule, const Times &times) {
    ScheduleTimes result = times.run(schedule);
    int64_t most = 0;
    for (unsigned r = 0; r < schedule.stages; ++r) {
      int64_t end = result.start[r].back() + times.of(schedule.units[r].back().kind);
      most = std::max(most, end - result.start[r].front() - result.busy[r]);
    }
    return most;
  }

  /// The same where a forward right before a whole backward runs beside it: they begin and end together. Where a
  /// microbatch turns back, the first two run one after the other.
  static int64_t getBubbleOfPairs(const Schedule &schedule, const Times &times, int64_t pairTime) {
    std::vector<bool> hasTurned(schedule.stages, false);
    auto turns = [&](unsigned r, const Unit &forward, const Unit &backward) {
      bool isFirst = !hasTurned[r] && schedule.copies == 1 && r + 1 == schedule.stages && backward.chunk == 1;
      // Of DualPipe's stages the two in the middle do so.
      isFirst |= !hasTurned[r] && schedule.copies == 2 && (r == schedule.stages / 2 || r + 1 == schedule.stages / 2);
      return isFirst && forward.chunk != backward.chunk;
    };
    std::map<std::tuple<bool, unsigned, unsigned>, int64_t> ends; // forward, virtual stage, microbatch
    std::vector<size_t> next(schedule.stages, 0);
    std::vector<int64_t> free(schedule.stages, 0), busy(schedule.stages, 0), begins(schedule.stages, -1);
    for (bool moves = true; moves;) {
      moves = false;
      for (unsigned r = 0; r < schedule.stages; ++r)
        while (next[r] < schedule.units[r].size()) {
          llvm::ArrayRef<Unit> rest = llvm::makeArrayRef(schedule.units[r]).drop_front(next[r]);
          bool isPair = rest.size() > 1 && rest[0].kind == PhaseKind::Forward && rest[1].kind == PhaseKind::Backward &&
                        !turns(r, rest[0], rest[1]);
          int64_t ready = free[r];
          for (const Unit &unit : rest.take_front(1 + isPair)) {
            unsigned v = schedule.getVirtualStage(unit.chunk, r);
            bool isForward = unit.kind == PhaseKind::Forward;
            std::optional<unsigned> before = isForward ? schedule.getPrevious(v) : schedule.getNext(v);
            if (!hasMessages(unit.kind) || !before)
              continue;
            auto end = ends.find({isForward, *before, unit.microbatch});
            ready = end == ends.end() ? -1 : std::max(ready, end->second);
            if (ready < 0)
              break;
          }
          if (ready < 0)
            break;
          hasTurned[r] = hasTurned[r] || rest[0].kind == PhaseKind::Backward || isPair;
          int64_t time = isPair ? pairTime : times.of(rest[0].kind);
          begins[r] = begins[r] < 0 ? ready : begins[r];
          free[r] = ready + time;
          busy[r] += time;
          for (const Unit &unit : rest.take_front(1 + isPair))
            if (hasMessages(unit.kind))
              ends[{unit.kind == PhaseKind::Forward, schedule.getVirtualStage(unit.chunk, r), unit.microbatch}] =
                  free[r];
          next[r] += 1 + isPair;
          moves = true;
        }
    }
    int64_t most = 0;
    for (unsigned r = 0; r < schedule.stages; ++r)
      most = std::max(most, free[r] - begins[r] - busy[r]);
    return most;
  }

  bool finishesWithWaitingSends(const Schedule &schedule) {
    RecvPosts oneAhead;
    for (const auto &units : schedule.units)
      for (unsigned position = 0; position < units.size(); ++position)
        (position ? oneAhead.back() : oneAhead.emplace_back()).push_back(position ? position - 1 : 0);
    return postRecvs(
               schedule, oneAhead, [](unsigned, const Unit &) { return true; }, diags)
        .has_value();
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
  forAll(
      [&](int64_t p, int64_t m) {
        Schedule schedule = get("one_f_one_b", p, m);
        for (const Times &times : {equal, unequal})
          EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B));
        for (unsigned r = 0; r < p; ++r)
          EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, p - r));
      },
      0, 1);
}

// Narayanan et al., arXiv 2104.04473: bubble (p-1)(F+B)/v of whole stages, (p-1)(F+B) in times of chunks; Megatron-LM
// with groups of g microbatches has 2(p-r-1) + (v-1)g forwards before the first backward.
TEST_F(LibrarySchedules, Interleaved) {
  for (int64_t p = 2; p <= 8; ++p)
    for (int64_t v = 2; v <= 4; ++v)
      for (int64_t m : {p, 2 * p - 1, 2 * p, 3 * p + 1, 5 * p})
        for (int64_t group = p; group <= m; ++group) {
          if (m % group && m % group < p)
            continue;
          SCOPED_TRACE("p = " + std::to_string(p) + ", m = " + std::to_string(m) + ", v = " + std::to_string(v) +
                       ", group = " + std::to_string(group));
          Schedule schedule = get("interleaved", p, m, {{"v", v}, {"group", group}});
          for (const Times &times : {equal, unequal})
            EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B));
          for (unsigned r = 0; r < p; ++r)
            EXPECT_EQ(countInFlight(schedule, r).total, std::min(m * v, 2 * (p - r - 1) + (v - 1) * group + 1));
          EXPECT_TRUE(finishesWithWaitingSends(schedule)) << os.str();
        }
  EXPECT_EQ(get("interleaved", 4, 8, {{"v", 2}}).units, get("interleaved", 4, 8, {{"v", 2}, {"group", 4}}).units);
  EXPECT_FALSE(run("interleaved", 4, 9, {{"v", 2}}));
  EXPECT_NE(os.str().find("9 microbatches in groups of 4 leave 1, but each of 4 stages needs one of the last group"),
            std::string::npos)
      << os.str();
  EXPECT_FALSE(run("interleaved", 4, 8, {{"v", 2}, {"group", 3}}));
  EXPECT_NE(os.str().find("groups of at least 4 microbatches, one for each stage, and at most 8, not of 3"),
            std::string::npos)
      << os.str();
  EXPECT_FALSE(run("interleaved", 4, 2, {{"v", 2}}));
}

// Qi et al., arXiv 2401.10241: bubble (p-1)(F+B-2W), memory of 1F1B's first stage, which is p microbatches.
TEST_F(LibrarySchedules, ZeroBubbleH1) {
  forAll(
      [&](int64_t p, int64_t m) {
        Schedule schedule = get("zb_h1", p, m);
        for (const Times &times : {equal, unequal})
          EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B - 2 * times.W));
        for (unsigned r = 0; r < p; ++r) {
          EXPECT_EQ(countInFlight(schedule, r).total, std::min(m, p - r));
          EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, std::min(m, p));
        }
      },
      0, 1);
  // Fewer microbatches than stages run, too.
  for (int64_t m = 1; m < 8; ++m)
    get("zb_h1", 8, m);
}

// There: bubble (p-1)(F+B-3W), nothing if F = B - W = W; 2p - 1 microbatches.
TEST_F(LibrarySchedules, ZeroBubbleH2) {
  forAll(
      [&](int64_t p, int64_t m) {
        Schedule schedule = get("zb_h2", p, m);
        for (const Times &times : {equal, unequal})
          EXPECT_EQ(getBubble(schedule, times), (p - 1) * (times.F + times.B - 3 * times.W));
        for (unsigned r = 0; r < p; ++r) {
          EXPECT_EQ(countInFlight(schedule, r).total, 2 * (p - r) - 1);
          EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, 2 * p - 1);
        }
      },
      -1, 2);
  EXPECT_FALSE(run("zb_h2", 4, 6));
  EXPECT_NE(os.str().find("ZB-H2 needs 2p - 1 = 7 microbatches or more to fill 4 stages, not 6"), std::string::npos)
      << os.str();
}

// Qi et al., arXiv 2405.15362: no bubble where F = B - W = W; what a stage keeps is p microbatches, of two chunks each.
TEST_F(LibrarySchedules, ZeroBubbleV) {
  forAll(
      [&](int64_t p, int64_t m) {
        Schedule schedule = get("zb_v", p, m);
        EXPECT_EQ(getBubble(schedule, equal), 0);
        for (unsigned r = 0; r < p; ++r) {
          EXPECT_EQ(schedule.getVirtualStage(1, r), 2 * p - 1 - r);
          EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, 2 * p);
        }
        EXPECT_TRUE(finishesWithWaitingSends(schedule)) << os.str();
      },
      -1, 2);
  for (int64_t m = 1; m < 15; ++m)
    EXPECT_TRUE(finishesWithWaitingSends(get("zb_v", 8, m))) << os.str();
}

// DeepSeek's DualPipeV: bubble (p-1)(F&B + B - 3W), of p ranks and times per chunk, where a forward and a backward that
// stand beside each other take F&B; 2p + 1 chunks.
TEST_F(LibrarySchedules, DualPipeV) {
  forAll(
      [&](int64_t p, int64_t m) {
        Schedule schedule = get("dualpipe_v", p, m);
        for (const Times &times : {equal, Times{3, 5, 2}})
          EXPECT_EQ(getBubbleOfPairs(schedule, times, times.F + times.B),
                    (p - 1) * (times.F + times.B + times.B - 3 * times.W));
        for (unsigned r = 0; r < p; ++r)
          EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, 2 * p + 1);
        EXPECT_TRUE(finishesWithWaitingSends(schedule)) << os.str();
      },
      0, 2);
  EXPECT_FALSE(run("dualpipe_v", 4, 7));
}

// DeepSeek-V3's DualPipe (arXiv 2412.19437, table 2): bubble (p/2-1)(F&B + B - 3W) and p + 1 microbatches in flight,
// for an even p and an even m, 2p or more.
TEST_F(LibrarySchedules, DualPipe) {
  for (int64_t p = 2; p <= 8; p += 2)
    for (int64_t m : {2 * p, 2 * p + 2, 4 * p}) {
      Schedule schedule = get("dualpipe", p, m);
      EXPECT_EQ(schedule.copies, 2u);
      for (const Times &times : {equal, Times{3, 5, 2}})
        EXPECT_EQ(getBubbleOfPairs(schedule, times, times.F + times.B),
                  (p / 2 - 1) * (times.F + times.B + times.B - 3 * times.W));
      for (unsigned r = 0; r < p; ++r)
        EXPECT_EQ(countInFlight(schedule, r, HeldUntil::WeightGradient).total, unsigned(p + 1));
      EXPECT_TRUE(finishesWithWaitingSends(schedule)) << os.str();
    }
  EXPECT_FALSE(run("dualpipe", 4, 6));
  EXPECT_FALSE(run("dualpipe", 4, 9));
  EXPECT_FALSE(run("dualpipe", 3, 8));
}
