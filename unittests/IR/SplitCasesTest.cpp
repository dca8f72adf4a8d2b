//===- SplitCasesTest.cpp - some iterations apart from the others ---------===//
#include "stage/IR/graph/SplitCases.h"
#include "LayersOfAllPhases.h"

using namespace stage;

namespace {
class SplitCasesTest : public LayersTest {};

TEST_F(SplitCasesTest, OfAllPhases) {
  std::unique_ptr<Graph> graph = parseLayers(4);
  ASSERT_TRUE(graph) << messages.str();
  Op *repeat = findRepeat(*graph);
  SplitCases split = splitCases(*graph, *repeat, {true, true, false, true});
  EXPECT_EQ(split.chosen, (std::vector<unsigned>{1}));
  EXPECT_EQ(split.additions, (std::vector<std::pair<unsigned, unsigned>>{{0, 1}}));
  EXPECT_TRUE(verify(*graph, diags)) << messages.str();
  std::string text = print(*graph);
  auto expect = [&](const char *line) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  };
  expect(R"(%y = repeat layers [4] cases (1 * 2, 0 * 1, 1 * 1) loop 0 (%h "layers.h" = %x : f32[B]) : f32[B] do {)");
  expect(R"(} or (%h.1 "layers.h" : f32[B]) {
      %w.1 "layers.w" = param : f32[B];
      %s.1 "layers.s" = scale(%h.1, %w.1) : f32[B];
      %t.1 "layers.t" = scale(%s.1, %g) : f32[B];
      yield %t.1;)");
  expect(R"(} or (%t.grad.1 "layers.t.grad" : f32[B] of %t.1) {
      %s.grad.1 "layers.s.grad" = scale(%t.grad.1, %g) : f32[B] of %s.1 from %t.1;)");
  expect("from %s.1;");
  expect("update(%g, %g.grad.1, %g.grad.3);"); // all that is added up
  expect(R"(repeat layers [4] cases (1 * 2, 0 * 1, 1 * 1) loop 0 () do {
      update(%w, %w.grad.1) in "layers";
      yield;
    } or () {
      update(%w.1, %w.grad.3) in "layers";)");
}

TEST_F(SplitCasesTest, OnlyCasesThatHaveBoth) {
  std::unique_ptr<Graph> graph = parse(std::string(head) + R"(
  forward {
    %x = input : f32[B];
    %y = repeat layers [5] cases (0 * 2, 1 * 3) loop 0 (%h "layers.h" = %x : f32[B]) : f32[B] do {
      yield %h;
    } or (%i "layers.h" : f32[B]) {
      %s "layers.s" = scale(%i, %i) : f32[B];
      yield %s;
    }
    return %y;
  }
})");
  ASSERT_TRUE(graph) << messages.str();
  const Op &repeat = **std::next(graph->getForward().begin());
  SplitCases whole = splitCases(*graph, repeat, {true, true, false, false, false});
  EXPECT_EQ(whole.chosen, (std::vector<unsigned>{0}));
  EXPECT_TRUE(whole.additions.empty());
  EXPECT_EQ(repeat.bodies.size(), 2u);
  SplitCases part = splitCases(*graph, repeat, {true, true, false, false, true});
  EXPECT_EQ(part.chosen, (std::vector<unsigned>{0, 2}));
  EXPECT_EQ(repeat.bodies.size(), 3u);
  EXPECT_EQ(repeat.cases.count(2, 0, 5), 1);
  EXPECT_TRUE(splitCases(*graph, repeat, std::vector<bool>(5, false)).chosen.empty());
}
} // namespace
