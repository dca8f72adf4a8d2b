//===- BatchingTest.cpp - closed forms of what iterations compute ---------===//
#include "ServedRequests.h"
#include <gtest/gtest.h>

using namespace stage;
using namespace stage::serving;

static SimulationOptions withBudget(int64_t tokens) {
  SimulationOptions options;
  options.batching.tokenBudget = tokens;
  return options;
}

/// S7: all tokens but the last are computed once, each attends itself and those before it, whatever the chunks are.
TEST(Batching, PairsDoNotDependOnChunks) {
  constexpr int64_t prompt = 1000, output = 10, tokens = prompt + output - 1;
  for (int64_t budget : {1, 7, 256, 1000, 4096}) {
    Served served = serve({makeRequest(prompt, output)}, withBudget(budget));
    ASSERT_TRUE(served.good);
    EXPECT_EQ(served.sum(&Iteration::newTokens), tokens);
    EXPECT_EQ(served.sum(&Iteration::attendedPairs), tokens * (tokens + 1) / 2);
    EXPECT_EQ(int64_t(served.iterations.size()), (prompt + budget - 1) / budget + output - 1);
    EXPECT_EQ(served.sum(&Iteration::sampling), output);
    EXPECT_EQ(served.sum(&Iteration::recomputedTokens), 0);
  }
}

/// 8 tokens have 8 * 8 / 2 under their mask, 4 behind 8 have 4 * 8 + 4 * 4 / 2, and one behind 12 has 13.
TEST(Batching, CountsTheAreaUnderTheMask) {
  Served served = serve({makeRequest(12, 2)}, withBudget(8));
  EXPECT_EQ(served.iterations[0].twiceArea, 64);
  EXPECT_EQ(served.iterations[1].twiceArea, 80);
  EXPECT_EQ(served.iterations[2].twiceArea, 26);
}

/// S8, S9: what a decoding request leaves of the budget is for a prompt; chunks are limited.
TEST(Batching, PromptsRunBesideDecoding) {
  Served served = serve({makeRequest(10, 4), makeRequest(30, 2)}, withBudget(16));
  EXPECT_EQ(served.names,
            (std::vector<std::string>{"i0 p0+10@0 p1+6@0", "i1 p1+15@6 1d+1@10", "i2 p1+9@21 1d+1@11", "i3 2d+2@42"}));
  SimulationOptions options = withBudget(16);
  options.batching.chunk = 4;
  served = serve({makeRequest(10, 2), makeRequest(4, 1)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+4@0 p1+4@0", "i1 p0+4@4", "i2 p0+2@8", "i3 1d+1@10"}));
}

/// S10: nobody overtakes.
TEST(Batching, AdmitsInOrder) {
  SimulationOptions options = withBudget(64);
  options.batching.maxSequences = 1;
  Served served = serve({makeRequest(4, 2), makeRequest(4, 1)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+4@0", "i1 1d+1@4", "i2 p1+4@0"}));
  // Request 1 wants two blocks of three when request 0 has two; request 2 would fit.
  options = withBudget(64);
  options.batching.cacheBlocks = 3;
  served = serve({makeRequest(32, 2), makeRequest(32, 1), makeRequest(8, 1)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+32@0", "i1 1d+1@32", "i2 p1+32@0 p2+8@0"}));
}

/// S10: a prompt of four blocks waits for all of them, or begins with one.
TEST(Batching, AdmitsWholePrompts) {
  SimulationOptions options = withBudget(16);
  options.batching.cacheBlocks = 4;
  std::vector<Request> requests = {makeRequest(8, 3), makeRequest(64, 1)};
  EXPECT_EQ(serve(requests, options).names[1], "i1 1d+1@8");
  options.batching.admission = Admission::Chunk;
  EXPECT_EQ(serve(requests, options).names[1], "i1 p1+15@8 1d+1@8");
}

/// S12: whole blocks, of all tokens that are computed.
TEST(Batching, CountsWholeBlocks) {
  Served served = serve({makeRequest(17, 17)}, withBudget(64));
  EXPECT_EQ(served.iterations.front().blocks, 2);
  EXPECT_EQ(served.iterations[15].blocks, 2);
  EXPECT_EQ(served.iterations[16].blocks, 3); // the 33rd token
}

/// S13, S14: two requests of 16 + 17 tokens need two blocks each from their second iteration on, and there are three.
TEST(Batching, YoungestComputesAgain) {
  SimulationOptions options = withBudget(64);
  options.batching.cacheBlocks = 3;
  Served served = serve({makeRequest(16, 17), makeRequest(16, 17)}, options);
  ASSERT_TRUE(served.good);
  EXPECT_EQ(served.names[0], "i0 p0+16@0 p1+16@0");
  EXPECT_EQ(served.names[1], "i1 1d+1@16");
  EXPECT_EQ(served.iterations[1].preemptions, 1);
  EXPECT_EQ(served.iterations[1].blocks, 2);
  // Request 1 is back as soon as its 17 known tokens find their two blocks, and computes 16 of them again.
  EXPECT_EQ(served.names[17], "i17 p1+17@0");
  EXPECT_EQ(served.sum(&Iteration::recomputedTokens), 16);
  EXPECT_EQ(served.sum(&Iteration::newTokens), 2 * 32 + 16);
  EXPECT_EQ(served.requests[1].preemptions, 1);
  EXPECT_EQ(served.requests[1].request.index, 1);
}

TEST(Batching, YoungestIsSwapped) {
  SimulationOptions options = withBudget(64);
  options.batching.cacheBlocks = 3;
  options.batching.preemption = Preemption::Swap;
  Served served = serve({makeRequest(16, 17), makeRequest(16, 17)}, options);
  EXPECT_EQ(served.iterations[1].blocksOut, 1);
  EXPECT_EQ(served.names[17], "i17 1d+1@16");
  EXPECT_EQ(served.iterations[17].blocksIn, 1);
  EXPECT_EQ(served.sum(&Iteration::recomputedTokens), 0);
  EXPECT_EQ(served.sum(&Iteration::newTokens), 2 * 32);
}

TEST(Batching, RefusesWhereItIsTold) {
  SimulationOptions options = withBudget(64);
  options.batching.cacheBlocks = 3;
  options.batching.preemption = Preemption::Refuse;
  Served served = serve({makeRequest(16, 17), makeRequest(16, 17)}, options);
  EXPECT_FALSE(served.good);
  EXPECT_NE(served.messages.find("iteration 1 has no block left for this request"), std::string::npos)
      << served.messages;
}

/// S15: 16 + 16 tokens are two blocks; the 33rd would be a third.
TEST(Batching, KnowsWhatNeverFits) {
  SimulationOptions options = withBudget(64);
  options.batching.cacheBlocks = 2;
  EXPECT_TRUE(serve({makeRequest(16, 17)}, options).good);
  EXPECT_TRUE(serve({makeRequest(32, 1)}, options).good);
  EXPECT_FALSE(serve({makeRequest(16, 18)}, options).good);
  options.batching.drafts = 1;
  EXPECT_FALSE(serve({makeRequest(16, 17)}, options).good);
  EXPECT_TRUE(serve({makeRequest(16, 16)}, options).good);
}

/// S16, S17: half of 4 drafts are accepted, so that three tokens come out of each iteration.
TEST(Batching, AcceptsDrafts) {
  SimulationOptions options = withBudget(64);
  options.batching.drafts = 4;
  options.batching.acceptedDrafts = 1;
  options.batching.ofDrafts = 2;
  Served served = serve({makeRequest(8, 7)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+8@0", "i1 1d+5@8", "i2 1d+5@11"}));
  EXPECT_EQ(served.sum(&Iteration::logits), 11);
  EXPECT_EQ(served.requests[0].accepted, 4);
  // A quarter of two: floor(2 / 4), floor(4 / 4), floor(6 / 4), ... of the first drafts.
  options.batching.drafts = 2;
  options.batching.ofDrafts = 4;
  served = serve({makeRequest(8, 7)}, options);
  EXPECT_EQ(served.names,
            (std::vector<std::string>{"i0 p0+8@0", "i1 1d+3@8", "i2 1d+3@9", "i3 1d+3@11", "i4 1d+3@12"}));
}

/// S19: the last token of a prompt is computed; a prefix is loaded again after a preemption.
TEST(Batching, LoadsPrefixes) {
  Served served = serve({makeRequest(40, 1, 0, 40)}, withBudget(64));
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+1@39"}));
  EXPECT_EQ(served.sum(&Iteration::loadedTokens), 39);
  EXPECT_EQ(served.iterations[0].blocks, 3);
  SimulationOptions options = withBudget(64);
  options.batching.cacheBlocks = 3;
  served = serve({makeRequest(16, 17), makeRequest(16, 17, 0, 10)}, options);
  EXPECT_EQ(served.sum(&Iteration::loadedTokens), 20);
  EXPECT_EQ(served.sum(&Iteration::recomputedTokens), 6);
}

/// S28, S29: prompts of 10 tokens, blocks of 4.
TEST(Batching, KeepsPrefixes) {
  auto make = [](std::vector<int64_t> prefix) {
    Request request = makeRequest(10, 1);
    request.prefix = std::move(prefix);
    return request;
  };
  SimulationOptions options = withBudget(64);
  options.batching.maxSequences = 1;
  options.batching.prefixBlock = 4;
  // The third number is of two tokens only.
  Served served = serve({make({1, 2, 3}), make({1, 4}), make({1, 2, 3}), make({5, 2})}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+10@0", "i1 p1+6@4", "i2 p2+2@8", "i3 p3+10@0"}));
  EXPECT_EQ(served.sum(&Iteration::loadedTokens), 12);
  // A store of two blocks: 1 is used after 2, so that 4 replaces 2.
  options.batching.prefixStore = 2;
  served = serve({make({1, 2}), make({1, 4}), make({1, 2}), make({1, 4})}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+10@0", "i1 p1+6@4", "i2 p2+6@4", "i3 p3+6@4"}));
  // Of one block the beginning stays.
  options.batching.prefixStore = 1;
  EXPECT_EQ(serve({make({1, 2}), make({1, 4})}, options).names[1], "i1 p1+6@4");
  options.batching.prefixStore = 0;
  served = serve({make({1, 2}), make({1, 2})}, options);
  EXPECT_EQ(served.sum(&Iteration::loadedTokens), 0);
  // A block is there at the end of the iteration that fills it: not for those that begin with it.
  options.batching.prefixStore = -1;
  options.batching.maxSequences = 2;
  served = serve({make({1, 2}), make({1, 2})}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+10@0 p1+10@0"}));
}

/// S24.
TEST(Batching, SumsUpManyChunks) {
  Served served = serve(std::vector<Request>(5, makeRequest(3, 1)), withBudget(64));
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 5p+15@0"}));
  served = serve(std::vector<Request>(4, makeRequest(3, 1)), withBudget(64));
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+3@0 p1+3@0 p2+3@0 p3+3@0"}));
}

/// Growth: with twice as many requests in the same batch, each computes the same.
TEST(Batching, WorkGrowsWithRequests) {
  auto count = [](size_t requests) {
    Served served = serve(std::vector<Request>(requests, makeRequest(50, 20)), withBudget(64));
    return std::pair(served.sum(&Iteration::newTokens), served.sum(&Iteration::attendedPairs));
  };
  auto [tokens, pairs] = count(200);
  EXPECT_EQ(count(400), std::pair(2 * tokens, 2 * pairs));
}
