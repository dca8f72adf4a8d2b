//===- FoldTest.cpp - how blocks of an index are merged -------------------===//
#include "stage/IR/algebra/Fold.h"
#include "../ParsedGraph.h"

using namespace stage;

namespace {
class FoldTest : public GraphTest {
protected:
  /// The step that is derived for index t, or why there is none.
  std::string derive(llvm::StringRef op) {
    graph = parse(("graph G { " + op + " forward { return; } }").str());
    if (!graph)
      return messages.str();
    Fold fold = deriveFold(*graph->defs.find("f"), *graph->defs.find("f")->findIndex("t"), graph->defs);
    if (!fold.fault.empty())
      return fold.fault;
    std::string text;
    llvm::raw_string_ostream out(text);
    print(out, *graph->defs.add(fold.step));
    numMerges = fold.merges.size();
    return llvm::StringRef(out.str()).split(" {\n").first.trim(" \n;").str();
  }

  std::unique_ptr<Graph> graph;
  size_t numMerges = 0;
};

TEST_F(FoldTest, SolvesForSumsOneAfterTheOther) {
  EXPECT_EQ(derive("op f(x: [s, t], v: [t, u]) -> (y: [s, u] = sum[t](exp(x[s, t]) * v[t, u]) / sum[t](exp(x[s, t])), "
                   "extra c: f32[s] = log(sum[t](exp(x[s, t])))) { fold t; }"),
            "op f.fold(x: [s, t], v: [t, u], c.before: [s], y.before: [s, u]) -> (y: [s, u] = "
            "(sum[t](exp(x[s, t]) * v[t, u]) + y.before[s, u] * exp(c.before[s])) / "
            "(sum[t](exp(x[s, t])) + exp(c.before[s])), "
            "extra c: f32[s] = log(sum[t](exp(x[s, t])) + exp(c.before[s])))");
  EXPECT_EQ(numMerges, 3u); // where they stand
}

TEST_F(FoldTest, SolvesInAResultThatHasTheIndicesOfTheSum) {
  // Solved for in y, what was before would have an index that c has not.
  EXPECT_EQ(derive("op f(x: [s, t], b: [u]) -> (y: [s, u] = sum[t](x[s, t]) * b[u], extra c: [s] = sum[t](x[s, t])) { "
                   "fold t; }"),
            "op f.fold(x: [s, t], b: [u], c.before: [s]) -> (y: [s, u] = (sum[t](x[s, t]) + c.before[s]) * b[u], "
            "extra c: [s] = sum[t](x[s, t]) + c.before[s])");
}

TEST_F(FoldTest, UndoesWhatStandsAroundASum) {
  auto step = [&](llvm::StringRef formula) {
    std::string text = derive(("op f(x: [s, t], b: [s]) -> (y: [s] = " + formula + ") { fold t; }").str());
    return llvm::StringRef(text).split(" = ").second.drop_back().str();
  };
  EXPECT_EQ(step("sum[t](x[s, t])"), "sum[t](x[s, t]) + y.before[s]");
  EXPECT_EQ(step("b[s] - mean[t](x[s, t])"), "b[s] - (mean[t](x[s, t]) + b[s] - y.before[s])");
  EXPECT_EQ(step("sum[t](x[s, t]) - b[s]"), "sum[t](x[s, t]) + y.before[s] + b[s] - b[s]");
  EXPECT_EQ(step("-sum[t](x[s, t]) + 3"), "-(sum[t](x[s, t]) + -(y.before[s] - 3)) + 3");
  EXPECT_EQ(step("b[s] / sum[t](x[s, t])"), "b[s] / (sum[t](x[s, t]) + b[s] / y.before[s])");
  EXPECT_EQ(step("exp(2 * sum[t](x[s, t]))"), "exp(2 * (sum[t](x[s, t]) + log(y.before[s]) / 2))");
  EXPECT_EQ(step("sqrt(sum[t](x[s, t]))"), "sqrt(sum[t](x[s, t]) + y.before[s] * y.before[s])");
  EXPECT_EQ(step("rsqrt(sum[t](x[s, t]))"), "rsqrt(sum[t](x[s, t]) + 1 / (y.before[s] * y.before[s]))");
}

TEST_F(FoldTest, KnowsWhatStandsOutsideOfSums) {
  derive("op f(x: [s, t], v: [t, u], c: [s]) -> (y: [s, u] = sum[t](exp(x[s, t]) * v[t, u]) / (sum[t](exp(x[s, t])) + "
         "exp(c[s])), "
         "extra l: f32[s] = log(sum[t](exp(x[s, t])) + exp(c[s]))) { fold t; }");
  Fold fold = deriveFold(*graph->defs.find("f"), *graph->defs.find("f")->findIndex("t"), graph->defs);
  EXPECT_EQ(fold.fault, "");
  EXPECT_FALSE(fold.outside.test(0) || fold.outside.test(1));
  EXPECT_TRUE(fold.outside.test(2));
  EXPECT_EQ(derive("op f(x: [s, t], c: [s]) -> (y: [s] = c[s] * sum[t](x[s, t] * c[s])) { fold t; }"),
            "'c' stands inside of a sum over 't' and outside of one, so that its gradient is no sum over blocks");
}

TEST_F(FoldTest, RefusesWhatResultsDoNotTell) {
  EXPECT_EQ(
      derive("op f(x: [s, t], v: [t, u]) -> (y: [s, u] = sum[t](x[s, t] * v[t, u]) / sum[t](x[s, t])) { fold t; }"),
      "its results do not tell what its sums over 't' have been so far; 'carrying' may name more");
  // One number per s does not tell one per s and u.
  EXPECT_EQ(derive("op f(x: [s, t], v: [t, u]) -> (y: [s, u] = tanh(sum[t](x[s, t] * v[t, u])), "
                   "extra c: [s] = sum[u](sum[t](x[s, t] * v[t, u]))) { fold t; }"),
            "its results do not tell what its sums over 't' have been so far; 'carrying' may name more");
  EXPECT_EQ(derive("op f(x: [s, t]) -> (y: [s] = sum[t](x[s, t])) { whole t; }"),
            "an invocation needs all of 't' at once: 'whole'");
  EXPECT_EQ(derive("op f(x: [s, t]) -> (y: [s, t] = x[s, t] / sum[t](x[s, t])) { fold t; }"), "'y' has index 't'");
}

TEST_F(FoldTest, IsLinearInLetsThatUseEachOther) {
  // Written out, what the sum is solved for would double with every let.
  for (unsigned number : {200u, 400u}) {
    std::string lets;
    for (unsigned i = 0; i < number; ++i)
      lets += "let a" + std::to_string(i + 1) + " = a" + std::to_string(i) + " * a" + std::to_string(i) + "; ";
    EXPECT_EQ(derive("op f(x: [s, t], b: [s]) -> (y: [s] = sum[t](x[s, t]) * a" + std::to_string(number) +
                     ", extra c: [s] = sum[t](b[s] * x[s, t])) { let a0 = sum[t](b[s] * x[s, t]); " + lets +
                     "fold t; }"),
              "its results do not tell what its sums over 't' have been so far; 'carrying' may name more");
  }
}
} // namespace
