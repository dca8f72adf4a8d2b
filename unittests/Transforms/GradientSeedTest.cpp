//===- GradientSeedTest.cpp - what the gradient starts from ---------------===//
#include "ParsedGraph.h"
#include "stage/Transforms/Passes.h"

using namespace stage;

namespace {
using GradientSeedTest = GraphTest;

/// A model's backward is made once; the microbatches are those of the plan.
TEST_F(GradientSeedTest, IsTheMeanOverTheMicrobatchesOfThePlan) {
  read("graph Tiny { dim D; bind D = 8; microbatches 4; op total(x: [d]) -> (result: [] = sum[d](x[d]));"
       " forward { %w = param : f32[D]; %l = total(%w) : f32[]; return %l; } }");
  differentiate(*graph, diags);
  const Block *backward = graph->findPhase(PhaseKind::Backward);
  ASSERT_TRUE(backward) << messages.str();
  const Op &seed = **backward->begin();
  EXPECT_EQ(seed.number, 0.25);
  graph->microbatches = 16;
  setGradientSeed(*graph);
  EXPECT_EQ(seed.number, 0.0625);
}
} // namespace
