//===- GroupIterationsTest.cpp - several iterations as one ---------------===//
#include "stage/IR/GroupIterations.h"
#include "ParsedGraph.h"
#include "stage/IR/Verifier.h"

using namespace stage;

namespace {
class GroupIterationsTest : public ::testing::Test, protected GraphSource {
protected:
  static std::string print(Graph &graph) {
    std::string text;
    llvm::raw_string_ostream out(text);
    stage::print(out, graph);
    return out.str();
  }

  static constexpr const char *head = R"(graph M {
  dim B;
  bind B = 2;
  optimizer sgd { flops = volume; }
  op scale(x: [b], w: [b]) -> (result: [b] = x[b] * w[b]);
  op sum(x: [b]) -> (result: [] = sum[b](x[b]));
  op sum.dx[b](dy: []) -> (result: [b] = dy[]);
)";
};

/// Forward, backward and step; a param of each layer and one that all share.
TEST_F(GroupIterationsTest, OfAllPhases) {
  std::unique_ptr<Graph> graph = parse(std::string(head) + R"(
  forward {
    %x = input : f32[B];
    %g = param : f32[B];
    %y = repeat layers [3] loop 0 (%h "layers.h" = %x : f32[B]) : f32[B] do {
      %w "layers.w" = param : f32[B];
      %s "layers.s" = scale(%h, %w) : f32[B];
      %t "layers.t" = scale(%s, %g) : f32[B];
      yield %t;
    }
    %loss = sum(%y) : f32[];
    return %loss;
  }
  backward {
    %loss.grad = constant 1 : f32[] of %loss;
    %y.grad = sum.dx(%loss.grad) : f32[B] of %y from %loss;
    %x.grad = repeat layers [3] loop 0 reverse (%t.grad "layers.t.grad" = %y.grad : f32[B] of %t) : f32[B] do {
      %s.grad "layers.s.grad" = scale(%t.grad, %g) : f32[B] of %s from %t;
      %g.grad = scale(%s, %t.grad) : f32[B] from %t in "layers";
      %g.grad.1 "g.grad" = accumulate(%g.grad, %g) : f32[B];
      %h.grad "layers.h.grad" = scale(%s.grad, %w) : f32[B] of %h from %s;
      %w.grad "layers.w.grad" = scale(%h, %s.grad) : f32[B] from %s;
      %w.grad.1 "layers.w.grad" = accumulate(%w.grad, %w) : f32[B];
      yield %h.grad;
    }
  }
  step {
    update(%g, %g.grad.1);
    repeat layers [3] loop 0 () do {
      update(%w, %w.grad.1) in "layers";
      yield;
    }
  }
})");
  ASSERT_TRUE(graph) << messages.str();
  Op *repeat = nullptr;
  for (auto &op : graph->getForward())
    repeat = op->kind == OpKind::Repeat ? op.get() : repeat;
  groupIterations(*graph, *repeat, {2, 1});
  EXPECT_TRUE(verify(*graph, diags)) << messages.str();
  std::string text = print(*graph);
  auto expect = [&](const char *line) { EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text; };
  expect(R"(%y = repeat layers [2] cases (0 * 1, 1 * 1) loop 0 (%h "layers.0.h" = %x : f32[B]) : f32[B] do {
      %w "layers.0.w" = param : f32[B];
      %s "layers.0.s" = scale(%h, %w) : f32[B];
      %t "layers.0.t" = scale(%s, %g) : f32[B];
      %w.1 "layers.1.w" = param : f32[B];
      %s.1 "layers.1.s" = scale(%t, %w.1) : f32[B];
      %t.1 "layers.1.t" = scale(%s.1, %g) : f32[B];
      yield %t.1;
    } or (%h.1 "layers.0.h" : f32[B]) {)");
  // From the last layer of a group to its first.
  expect(R"(%s.grad "layers.1.s.grad" = scale(%t.grad, %g) : f32[B] of %s.1 from %t.1;)");
  expect(R"(= scale(%h.grad, %g) : f32[B] of %s from %t;)");
  expect("update(%g, %g.grad.3, %g.grad.1, %g.grad.5);"); // all that is added up
}

TEST_F(GroupIterationsTest, EqualGroups) {
  std::unique_ptr<Graph> graph = parse(std::string(head) + R"(
  forward {
    %x = input : f32[B];
    %y = repeat layers [3*B] loop 0 (%h "layers.h" = %x : f32[B]) : f32[B] do {
      %s "layers.s" = scale(%h, %h) : f32[B];
      yield %s;
    }
    return %y;
  }
})");
  ASSERT_TRUE(graph) << messages.str();
  const Op &repeat = **std::next(graph->getForward().begin());
  groupIterations(*graph, repeat, {3, 3});
  EXPECT_EQ(repeat.count.str(), "B");
  EXPECT_EQ(repeat.bodies.size(), 1u);
  EXPECT_TRUE(repeat.cases.getRuns().empty());
  EXPECT_TRUE(verify(*graph, diags)) << messages.str();
}
} // namespace
