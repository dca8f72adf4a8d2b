//===- FormulaTest.cpp - values and gradients of operators ----------------===//
#include "FormulaEvaluator.h"
#include "ParsedGraph.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

namespace {
class FormulaTest : public GraphTest {
protected:
  /// The operator `text` declares, with every index of size `size` and operands drawn.
  void load(const std::string &operation, int64_t size) {
    std::string source = "graph G { " + operation + " forward { } }";
    ASSERT_NO_FATAL_FAILURE(read(source));
    const OpDef &def = *graph->defs.all().front();
    in = Invocation();
    in.def = &def;
    in.sizes.assign(def.indices.size(), size);
    in.positions.assign(def.indices.size(), allPositions(size));
    operands.clear();
    for (unsigned o = 0; o < def.operands.size(); ++o) {
      operands.emplace_back(llvm::SmallVector<Positions, 4>(def.operands[o].indices.size(), allPositions(size)));
      for (size_t i = 0; i < operands.back().data.size(); ++i)
        operands.back().data[i] = drawUniform({o, i}) + 0.1;
    }
    connect();
  }
  void connect() {
    in.operands.clear();
    for (const Tensor &operand : operands)
      in.operands.push_back(&operand);
  }
  Tensor evaluate(unsigned result = 0) {
    FormulaEvaluator evaluator(in, graph->defs, graph->binding);
    Tensor tensor = evaluator.evaluate(result);
    EXPECT_EQ(evaluator.getFault(), "");
    return tensor;
  }
  /// The gradients of all operands against central differences of  sum of weight * result.
  void expectDerivative() {
    const OpDef &def = *in.def;
    std::vector<Tensor> weights;
    std::vector<const Tensor *> weightPointers;
    for (unsigned r = 0; r < def.results.size(); ++r) {
      weights.push_back(evaluate(r));
      for (size_t i = 0; i < weights.back().data.size(); ++i)
        weights.back().data[i] = drawUniform({77, r, i}) - 0.3;
    }
    for (const Tensor &weight : weights)
      weightPointers.push_back(&weight);
    auto total = [&] {
      double sum = 0;
      for (unsigned r = 0; r < def.results.size(); ++r) {
        Tensor result = evaluate(r);
        for (size_t i = 0; i < result.data.size(); ++i)
          sum += weights[r].data[i] * result.data[i];
      }
      return sum;
    };
    llvm::SmallVector<unsigned, 4> wanted;
    for (unsigned o = 0; o < operands.size(); ++o)
      wanted.push_back(o);
    std::vector<Tensor> gradients =
        FormulaEvaluator(in, graph->defs, graph->binding).differentiate(weightPointers, wanted);
    const double h = 1e-6;
    for (unsigned o = 0; o < operands.size(); ++o)
      for (size_t i = 0; i < operands[o].data.size(); ++i) {
        double original = operands[o].data[i];
        operands[o].data[i] = original + h;
        double above = total();
        operands[o].data[i] = original - h;
        double below = total();
        operands[o].data[i] = original;
        EXPECT_NEAR(gradients[o].data[i], (above - below) / (2 * h), 1e-6) << "operand " << o << ", element " << i;
      }
  }

  Invocation in;
  std::vector<Tensor> operands;
};
} // namespace

TEST_F(FormulaTest, AProductIsSummedOverWhatTheResultLacks) {
  load("op matmul(x: [i, k], w: [k, j]) -> (result: [i, j] = sum[k](x[i, k] * w[k, j]));", 2);
  operands[0].data = {1, 2, 3, 4};
  operands[1].data = {5, 6, 7, 8};
  EXPECT_EQ(evaluate().data, (std::vector<double>{19, 22, 43, 50}));
}

TEST_F(FormulaTest, ASplitSumIsPartialAndAMeanCountsEveryElement) {
  load("op average(x: [i]) -> (result: [] = mean[i](x[i]));", 4);
  operands[0].data = {1, 2, 3, 4};
  EXPECT_EQ(evaluate().data.front(), 2.5);
  // The rank that holds positions 2 and 3 of 4.
  in.positions[0] = operands[0].dims[0] = {2, 3};
  operands[0].data = {3, 4};
  EXPECT_EQ(evaluate().data.front(), 7.0 / 4);
}

TEST_F(FormulaTest, PositionsAreGlobal) {
  load("op mask(x: [s, t]) -> (result: [s, t] = where(t <= s, x[s, t], 0));", 4);
  in.positions[0] = operands[0].dims[0] = {1, 3};
  operands[0].data.assign(8, 1);
  EXPECT_EQ(evaluate().data, (std::vector<double>{1, 1, 0, 0, 1, 1, 1, 1}));
}

TEST_F(FormulaTest, ALookupOfWhatAnotherRankHoldsAddsNothing) {
  load("op pick(ids: [i], table: [v]) -> (result: [i] = table[ids[i]]);", 4);
  operands[0].data = {0, 3, 2, 1};
  in.positions[1] = operands[1].dims[0] = {2, 3};
  operands[1].data = {12, 13};
  EXPECT_EQ(evaluate().data, (std::vector<double>{0, 13, 12, 0}));
}

TEST_F(FormulaTest, AnIdThatLeadsNowhereIsAFault) {
  load("op pick(ids: [i], table: [v]) -> (result: [i] = table[ids[i]]);", 4);
  operands[0].data = {0, 3, 4, 1};
  FormulaEvaluator evaluator(in, graph->defs, graph->binding);
  evaluator.evaluate(0);
  EXPECT_NE(evaluator.getFault().find("is 4"), std::string::npos) << evaluator.getFault();
}

TEST_F(FormulaTest, DerivativesAgreeWithDifferences) {
  for (const char *operation : {
           "op matmul(x: [i, k], w: [k, j]) -> (result: [i, j] = sum[k](x[i, k] * w[k, j]));",
           "op norm(x: [i, d], g: [d]) -> (result: [i, d] = x[i, d] * rsqrt(mean[d](x[i, d] * x[i, d]) + 0.1) * g[d]) "
           "{ whole d; }",
           "op softmax(x: [s, t]) -> (result: [s, t] = w / sum[t](w)) { let w = where(t <= s, exp(x[s, t]), 0); whole "
           "t; }",
           "op layer(x: [i, d]) -> (result: [i, d] = (x[i, d] - mu) / sqrt(spread + 0.1)) { let mu = mean[d](x[i, d]); "
           "let spread = mean[d]((x[i, d] - mu) * (x[i, d] - mu)); whole d; }",
           "op highest(x: [i, d]) -> (result: [i] = max[d](x[i, d]));",
           "op calls(x: [i]) -> (result: [i] = erf(x[i]) + tanh(x[i]) * sin(x[i]) - cos(x[i]) / sigmoid(x[i]) + "
           "abs(log(x[i])));",
           "op chosen(x: [i], y: [i]) -> (result: [i] = max(x[i], y[i]) * min(x[i], 0.5));",
           "op two(x: [i, v], top: [i]) -> (z: [i] = sum[v](exp(x[i, v] - top[i])), w: [v] = sum[i](x[i, v] * "
           "top[i]));",
       }) {
    SCOPED_TRACE(operation);
    load(operation, 3);
    expectDerivative();
  }
}

/// An opaque operator's stand-in: every element that a result may depend on changes it, and no other.
TEST_F(FormulaTest, StandInsDependOnAllTheyMayAndNothingElse) {
  load("op scan(x: [b, s, d], a: [d, n]) -> (result: [b, s, d]) { opaque; whole s; }", 3);
  Tensor base = evaluate();
  for (unsigned o = 0; o < 2; ++o)
    for (size_t i = 0; i < operands[o].data.size(); ++i) {
      double original = operands[o].data[i];
      operands[o].data[i] += 0.5;
      Tensor moved = evaluate();
      operands[o].data[i] = original;
      for (int64_t k = 0; k < 27; ++k) {
        int64_t b = k / 9, d = k % 3;
        // x[b, s', d] moves result[b, s, d] for every s; a[d, n'] moves result[b, s, d] for every b and s.
        bool depends = o == 0 ? int64_t(i) / 9 == b && int64_t(i) % 3 == d : int64_t(i) / 3 == d;
        EXPECT_EQ(std::fabs(moved.data[k] - base.data[k]) > 1e-6, depends) << o << " " << i << " " << k;
      }
    }
  expectDerivative();
}

TEST_F(FormulaTest, DrawsDifferByInvocationAndAreTheSameAgain) {
  load("op drop(x: [i]) -> (result: [i] = x[i] * random(0.5), extra mask: u8[i]);", 64);
  in.identity = 1;
  Tensor first = evaluate(), again = evaluate(), mask = evaluate(1);
  EXPECT_EQ(first.data, again.data);
  size_t kept = llvm::count_if(first.data, [](double x) { return x != 0; });
  EXPECT_GT(kept, 16u);
  EXPECT_LT(kept, 48u);
  in.identity = 2;
  EXPECT_NE(evaluate().data, first.data);
  // A backward that is given the mask draws what forward drew.
  in.draws = &mask;
  EXPECT_EQ(evaluate().data, first.data);
}

TEST_F(FormulaTest, IntegersAreDealtOutInTurn) {
  ASSERT_NO_FATAL_FAILURE(load("op route(x: [b, j]) -> (index: i32[b, j]) { opaque; whole j; }", 4));
  in.identity = 12345;
  in.limits = {8};
  Tensor whole = evaluate();
  std::vector<unsigned> times(8);
  for (double number : whole.data) {
    ASSERT_EQ(number, std::floor(number));
    ASSERT_TRUE(number >= 0 && number < 8);
    ++times[size_t(number)];
  }
  // 16 numbers below 8: each twice.
  EXPECT_EQ(times, std::vector<unsigned>(8, 2));
  // The slots of one token are different.
  EXPECT_NE(whole.data[0], whole.data[1]);
  // A rank that has the last two tokens has the numbers that they have in the whole.
  in.positions[0] = {2, 3};
  operands[0] = *extract(operands[0], {{2, 3}, allPositions(4)});
  connect();
  Tensor piece = evaluate();
  EXPECT_EQ(piece.data, std::vector<double>(whole.data.begin() + 8, whole.data.end()));
}

TEST_F(FormulaTest, DisturbedSumsAreTheSameButForRounding) {
  ASSERT_NO_FATAL_FAILURE(load("op f(x: [i]) -> (y: [] = sum[i](x[i] * 3), top: [] = max[i](x[i]));", 5));
  operands[0].data = {1e16, 1, -1e16, 1, 2};
  double inOrder = evaluate().data.front();
  Tensor one = evaluate();
  one.data = {1};
  in.disturbsSums = true;
  EXPECT_NE(evaluate().data.front(), inOrder);
  // Of equal elements the first stays that which a maximum is derived by.
  operands[0].data = {2, 7, 7, 1, 7};
  Tensor gradient = FormulaEvaluator(in, graph->defs, graph->binding).differentiate({nullptr, &one}, {0}).front();
  EXPECT_EQ(gradient.data, (std::vector<double>{0, 1, 0, 0, 0}));
}
