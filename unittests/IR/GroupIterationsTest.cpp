//===- GroupIterationsTest.cpp - several iterations as one ---------------===//
#include "stage/IR/graph/GroupIterations.h"
#include "LayersOfAllPhases.h"

using namespace stage;

namespace {
class GroupIterationsTest : public LayersTest {};

TEST_F(GroupIterationsTest, OfAllPhases) {
  std::unique_ptr<Graph> graph = parseLayers(3);
  ASSERT_TRUE(graph) << messages.str();
  Op *repeat = findRepeat(*graph);
  groupIterations(*graph, *repeat, {2, 1});
  EXPECT_TRUE(verify(*graph, diags)) << messages.str();
  std::string text = print(*graph);
  auto expect = [&](const char *line) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  };
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
