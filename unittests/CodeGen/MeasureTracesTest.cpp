//===- MeasureTracesTest.cpp - sizes are foretold to the byte -------------===//
//
// Programs that the language does not reach yet, measured and written.
//
//===----------------------------------------------------------------------===//
#include "ProgramTest.h"
#include "stage/CodeGen/Emit.h"
#include "stage/Tasks/ClassTasks.h"
#include "llvm/Support/FileSystem.h"

using namespace stage;

namespace {
class MeasureTracesTest : public ProgramTest {
protected:
  /// With as many microbatches that ids, tags and the numbers in names get wider on the way.
  void expectMeasuredAsWritten(const std::string &source) {
    ASSERT_NO_FATAL_FAILURE(build(source));
    llvm::SmallString<64> folder;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("stage-measure", folder));
    for (bool tracker : {false, true}) {
      EmitOptions options;
      options.directory = (folder + "/traces").str();
      options.force = true;
      options.tracker = tracker;
      auto measured = measureTraces(*program, options, diags), written = emitTraces(*program, options, diags);
      ASSERT_TRUE(measured && written) << messages.str();
      EXPECT_EQ(measured->nodes, written->nodes);
      EXPECT_EQ(measured->bytes, written->bytes);
      EXPECT_EQ(measured->classes, written->classes);
    }
    llvm::sys::fs::remove_directories(folder);
  }

  static std::string listUnits(unsigned count) {
    std::string units;
    for (const char *kind : {"F", "B"})
      for (unsigned m = 0; m < count; ++m)
        units += (units.empty() ? "" : " ") + (kind + std::to_string(m));
    return "units \"" + units + "\";";
  }
};

/// What every rank sends on differs along cp, as the part of the mask does.
static std::string makeRing(const std::string &units, const std::string &rules) {
  return "graph Ring { passes insert-communication; dim S; dim D; mesh (pp = 2, cp = 24, tp = 6); bind D = 6, S = 96; "
         "microbatches 300; inference;" +
         rules + "pipeline layers over pp {" + units + units +
         "}"
         R"(
  op causal(q: [s, d], k: [t, d]) -> (result: [s, d] = sum[t](where(t <= s, q[s, d] * k[t, d], 0))) { mask causal(s, t); flops = area; }
  forward {
    %x = input : f32[S, D] {cp, tp};
    %h = repeat layers [4] loop 0 (%h.1 "layers.h" = %x : f32[S, D] {cp, tp}) : f32[S, D] {cp, tp} do {
      %a "layers.a" = permute(%h.1) over cp by 5 : f32[S, D] {cp rotated 19, tp};
      %g "layers.g" = all_gather(%h.1) over cp dim 0 : f32[S, D] {_, tp};
      %b "layers.b" = causal(%a, %g) [s over cp rotated 19, d over tp] : f32[S, D] {cp rotated 19, tp};
      %c "layers.c" = permute(%b) over cp by 19 : f32[S, D] {cp, tp};
      yield %c;
    }
    %y = permute(%h) over tp by 1 : f32[S, D] {cp, tp rotated 5};
    return %y;
  }
})";
}

TEST_F(MeasureTracesTest, NeighboursInARing) { expectMeasuredAsWritten(makeRing(listUnits(300), "")); }

/// Rules that hold together on some ranks, alone on others, and in places on none.
TEST_F(MeasureTracesTest, RanksOfSeveralSpeeds) {
  expectMeasuredAsWritten(makeRing(listUnits(300),
                                   "slow (cp = 5) by 3/2; slow (tp = 0, pp = 1) by 200; slow (cp = 5, tp = 0) by 1000;"
                                   "slow (pp = 0) by 1/3; slow (tp = 0) by 200; slow (cp = 6) by 3/2;"));
}

/// Each microbatch goes forward and backward before the next: the widths of ids of the units before differ from its
/// own.
static std::string waitForEarlierUnits(unsigned layers, unsigned microbatches) {
  std::string source = R"(graph Units {
  passes insert-communication;
  dim B;
  mesh (dp = 2);
  bind B = 8;
  microbatches MICROBATCHES;
  optimizer sgd { flops = volume; }
  stream side: computation;
  op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
  op loss(x: [b]) -> (result: [] = sum[b](x[b]));
  op loss.dx(dy: []) -> (result: [b] = dy[]);
  op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);
  op scale.dg(x: [b], dy: [b]) -> (result: [b] = x[b] * dy[b]);
  forward {
    %x0 = input : f32[B] {dp};
    %w "w" = param : f32[B] {dp};
    %r = repeat layers [LAYERS] loop 0 (%x "layers.x" = %x0 : f32[B] {dp}) : f32[B] {dp} stage 0 do {
      %g "layers.g" = param : f32[B] {dp};
      %y "layers.y" = scale(%x, %g) [b over dp] : f32[B] {dp} after %g.grad [unit -2];
      %z "layers.z" = scale(%y, %w) [b over dp] : f32[B] {dp};
      yield %z;
    }
    %l = loss(%r) [b over dp] : f32[] partial(dp) stage 0;
    %l.1 "l" = all_reduce(%l) over dp : f32[] stage 0;
    return %l.1 stage 0;
  }
  backward {
    %loss.grad = constant 1 : f32[] of %l;
    %r.grad = loss.dx(%loss.grad) [b over dp] : f32[B] {dp} of %r from %l stage 0;
    %x0.grad = repeat layers [LAYERS] loop 0 reverse (%z.grad "layers.z.grad" = %r.grad : f32[B] {dp} of %z) : f32[B] {dp} stage 0 do {
      %w.grad "w.grad" = scale.dg(%y, %z.grad) [b over dp] : f32[B] {dp} from %z;
      %w.grad.1 "w.grad" = accumulate(%w.grad, %w) : f32[B] {dp};
      %y.grad "layers.y.grad" = scale.dx(%z.grad, %w) [b over dp] : f32[B] {dp} of %y from %z;
      %x.grad "layers.x.grad" = scale.dx(%y.grad, %g) [b over dp] : f32[B] {dp} of %x from %y after %g.grad [-1];
      %g.grad "layers.g.grad" = scale.dg(%x, %y.grad) [b over dp] : f32[B] {dp} from %y stream side;
      %g.grad.1 "layers.g.grad" = accumulate(%g.grad, %g) : f32[B] {dp};
      yield %x.grad;
    }
  }
  step {
    update(%w, %w.grad.1);
    repeat layers [LAYERS] loop 0 reverse () stage 0 do {
      update(%g, %g.grad.1) in "layers";
      yield;
    }
  }
}
)";
  auto replace = [&](llvm::StringRef word, unsigned number) {
    for (size_t at; (at = source.find(word)) != std::string::npos;)
      source.replace(at, word.size(), std::to_string(number));
  };
  replace("LAYERS", layers);
  replace("MICROBATCHES", microbatches);
  return source;
}

TEST_F(MeasureTracesTest, WaitingForEarlierUnits) { expectMeasuredAsWritten(waitForEarlierUnits(2, 300)); }

/// Iterations with one and with four digits, on streams of their own, that wait for earlier units and iterations: equal
/// ones are counted, and end where they would have.
TEST_F(MeasureTracesTest, ManyEqualIterations) {
  for (unsigned layers : {12, 95, 1003, 6000})
    expectMeasuredAsWritten(waitForEarlierUnits(layers, 5));
}

/// Collectives and permutes, whose tags count on; an iteration reads what came before the repeat from the next of
/// three.
static std::string handRound(unsigned layers) {
  return R"(graph Round {
  passes insert-communication;
  dim S;
  mesh (cp = 2);
  bind S = 8;
  microbatches 3;
  inference;
  op scale(x: [s], g: [s]) -> (result: [s] = x[s] * g[s]);
  forward {
    %x = input : f32[S] {cp};
    %p = scale(%x, %x) [s over cp] : f32[S] {cp};
    %q = scale(%p, %p) [s over cp] : f32[S] {cp};
    %r = scale(%q, %q) [s over cp] : f32[S] {cp};
    %s = scale(%r, %q) [s over cp] : f32[S] {cp};
    %h, %a, %b, %c = repeat layers [)" +
         std::to_string(layers) +
         R"(] loop 0 (%h.1 "layers.h" = %s : f32[S] {cp}, %a.1 "layers.a" = %p : f32[S] {cp}, %b.1 "layers.b" = %q : f32[S] {cp}, %c.1 "layers.c" = %r : f32[S] {cp}) : f32[S] {cp}, f32[S] {cp}, f32[S] {cp}, f32[S] {cp} do {
      %y "layers.y" = scale(%h.1, %a.1) [s over cp] : f32[S] {cp};
      %m "layers.m" = permute(%y) over cp by 1 : f32[S] {cp rotated 1};
      %n "layers.n" = permute(%m) over cp by 1 : f32[S] {cp};
      %g "layers.g" = all_gather(%n) over cp dim 0 : f32[S] {_};
      %z "layers.z" = slice(%g) over cp dim 0 : f32[S] {cp};
      yield %z, %b.1, %c.1, %a.1;
    }
    return %h;
  }
})";
}

TEST_F(MeasureTracesTest, CollectivesOfManyEqualIterations) { expectMeasuredAsWritten(handRound(1200)); }

/// A hundred times as many iterations, all counted, are hardly more that are lowered and encoded.
TEST_F(MeasureTracesTest, CostOfManyEqualIterations) {
  auto count = [&](const std::string &source) {
    build(source);
    GroupTable groups(*program);
    EmitOptions options;
    ClassTasks tasks(*program, groups, options, RankClass(), diags);
    uint64_t lengths = 0, nodes = 0;
    for (unsigned unit = 0; unit < tasks.getUnits().size(); ++unit)
      tasks.countUnit(unit, [&](const Task &, uint64_t times) {
        ++lengths;
        nodes += times;
      });
    EXPECT_EQ(nodes, countNodes(*program, program->stages[0]));
    return lengths;
  };
  EXPECT_LT(count(waitForEarlierUnits(100003, 5)), 2 * count(waitForEarlierUnits(1003, 5)));
  EXPECT_LT(count(handRound(100003)), 2 * count(handRound(1003)));
}
} // namespace
