//===- SimulationTest.cpp - replicas and time -----------------------------===//
#include "ServedRequests.h"
#include "stage/Serving/Metrics.h"
#include <gtest/gtest.h>
#include <limits>

using namespace stage;
using namespace stage::serving;

constexpr int64_t ms = 1'000'000;

/// S11: an iteration begins at the end of the one before, or with an arrival; who arrives then is in it.
TEST(Simulation, IterationsBeginAtOnce) {
  Served served = serve({makeRequest(8, 3), makeRequest(8, 1, 1 * ms), makeRequest(8, 1, 10 * ms)}, {});
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+8@0", "i1 p1+8@0 1d+1@8", "i2 1d+1@9", "i3 p2+8@0"}));
  EXPECT_EQ(served.iterations[3].start, 10 * ms);
  // Just after the begin is too late.
  served = serve({makeRequest(8, 2), makeRequest(8, 1, 1)}, {});
  EXPECT_EQ(served.names[1], "i1 p1+8@0 1d+1@8");
}

/// S25.
TEST(Simulation, TimesOfARequest) {
  SimulationOptions options;
  options.batching.tokenBudget = 4;
  Served served = serve({makeRequest(8, 3), makeRequest(4, 1)}, options);
  EXPECT_EQ(served.requests[0].start, 0);
  EXPECT_EQ(served.requests[0].firstToken, 2 * ms);
  EXPECT_EQ(served.requests[0].end, 4 * ms);
  EXPECT_EQ(served.requests[1].start, 2 * ms); // three tokens beside one that decodes
  EXPECT_EQ(served.requests[1].firstToken, 4 * ms);
}

/// S20: by turns, or to whom has the fewest; S23: numbers go over all replicas.
TEST(Simulation, DealsRequests) {
  SimulationOptions options;
  options.replicas = 2;
  std::vector<Request> requests = {makeRequest(8, 100), makeRequest(8, 1), makeRequest(8, 100, 5 * ms),
                                   makeRequest(8, 1, 5 * ms)};
  Served served = serve(requests, options);
  EXPECT_EQ(served.requests.front().replica, 1u);
  for (const FinishedRequest &request : served.requests)
    EXPECT_EQ(request.replica, request.request.index % 2);
  options.dealing = Dealing::LeastLoaded;
  served = serve(requests, options);
  for (const FinishedRequest &request : served.requests)
    EXPECT_EQ(request.replica, request.request.index == 0 || request.request.index == 3 ? 0u : 1u);
  for (size_t i = 0; i < served.iterations.size(); ++i)
    EXPECT_EQ(served.iterations[i].number, int64_t(i));
  // S21: request 1 ends just before request 2 arrives.
  served = serve({makeRequest(8, 3), makeRequest(8, 1), makeRequest(8, 3, 1 * ms)}, options);
  EXPECT_EQ(served.requests.back().request.index, 2);
  EXPECT_EQ(served.requests.back().replica, 1u);
}

/// S22: all begin together, also who has nothing to do.
TEST(Simulation, RunsInLockStep) {
  SimulationOptions options;
  options.replicas = 3;
  options.lockStep = true;
  Served served = serve({makeRequest(8, 2), makeRequest(8, 1)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 r0 p0+8@0", "i0 r1 p1+8@0", "i0 r2 idle", "i1 r0 1d+1@8",
                                                    "i1 r1 idle", "i1 r2 idle"}));
  // A request that arrives meanwhile waits for the step to end.
  served = serve({makeRequest(8, 2), makeRequest(8, 1, ms / 2)}, options);
  EXPECT_EQ(served.names[4], "i1 r1 p1+8@0");
}

/// S36, S39: an iteration passes all stages; alone, a request waits for its token on the last one.
TEST(Simulation, AloneOnAPipeline) {
  SimulationOptions options;
  options.batching.stages = 3;
  Served served = serve({makeRequest(8, 4)}, options);
  ASSERT_TRUE(served.good);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+8@0", "i1 1d+1@8", "i2 1d+1@9", "i3 1d+1@10"}));
  EXPECT_EQ(served.requests[0].firstToken, 3 * ms);
  EXPECT_EQ(served.requests[0].end, 4 * 3 * ms);
}

/// S36, S37: as many requests as stages, one in an iteration, use all stages: n tokens of each of p requests take n p +
/// p - 1 stage times. Twice as many tokens take twice as long, but for the stages that are passed at the end.
TEST(Simulation, AsManyRequestsAsStages) {
  for (unsigned stages : {1, 2, 5})
    for (int64_t output : {10, 20}) {
      SimulationOptions options;
      options.batching.stages = stages;
      options.batching.maxSequences = 1;
      Served served = serve(std::vector<Request>(stages, makeRequest(8, output)), options);
      ASSERT_TRUE(served.good);
      EXPECT_EQ(int64_t(served.iterations.size()), stages * output);
      EXPECT_EQ(served.requests.back().end, (stages * output + stages - 1) * ms);
      for (size_t i = 0; i < served.iterations.size(); ++i)
        EXPECT_EQ(served.iterations[i].sequences.front().request, int64_t(i % stages));
    }
  // One more waits for one of them to end.
  SimulationOptions options;
  options.batching.stages = 2;
  options.batching.maxSequences = 1;
  Served served = serve(std::vector<Request>(3, makeRequest(8, 2)), options);
  EXPECT_EQ(served.names,
            (std::vector<std::string>{"i0 p0+8@0", "i1 p1+8@0", "i2 1d+1@8", "i3 1d+1@8", "i4 p2+8@0", "i5 1d+1@8"}));
}

/// S37: the next chunk of a prompt does not wait for the one before: c chunks take c + p - 1 stage times. Nor do drafts
/// know the token behind which they are.
TEST(Simulation, ChunksFollowEachOther) {
  SimulationOptions options;
  options.batching.stages = 4;
  options.batching.tokenBudget = 100;
  options.batching.drafts = 3;
  Served served = serve({makeRequest(1000, 5)}, options);
  ASSERT_TRUE(served.good);
  EXPECT_EQ(served.names[9], "i9 p0+100@900");
  EXPECT_EQ(served.requests[0].firstToken, 13 * ms);
  EXPECT_EQ(served.names[10], "i10 1d+4@1000");
  EXPECT_EQ(served.requests[0].end, (13 + 4 * 4) * ms); // no draft is accepted
  EXPECT_EQ(served.sum(&Iteration::attendedPairs), 1000 * 1001 / 2 + 4 * (1000 + 1001 + 1002 + 1003) + 4 * 10);
}

/// S37: who verifies fewer drafts than there might be, as the budget is short, waits for what is sampled as well.
TEST(Simulation, FewerDraftsAreNoSecondTurn) {
  SimulationOptions options;
  options.batching.stages = 2;
  options.batching.tokenBudget = 6;
  options.batching.drafts = 3;
  Served served = serve({makeRequest(3, 3), makeRequest(3, 3)}, options);
  ASSERT_TRUE(served.good);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+3@0 p1+3@0", "i1 2d+6@6", "i2 2d+6@8"}));
  EXPECT_EQ(served.iterations[2].start, 4 * ms);
}

/// S39: the slowest of three stages says how often tokens come: one of 1, 3 and 1 ms, so that the i-th request is
/// through at 5 + 3 i.
TEST(Simulation, TheSlowestStageSaysHowFast) {
  SimulationOptions options;
  options.batching.stages = 3;
  options.batching.tokenBudget = 8; // one request each
  // Three come at once, three while those are in flight and the first stage is free.
  std::vector<Request> requests(3, makeRequest(8, 1));
  requests.resize(6, makeRequest(8, 1, 3 * ms));
  Served served =
      serve(requests, options, [](llvm::ArrayRef<Iteration>, unsigned stage) { return stage == 1 ? 3e-3 : 1e-3; });
  ASSERT_TRUE(served.good);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(served.requests[i].end, (5 + 3 * i) * ms);
  // The first stage is free after 1 ms, but no more than three are in flight.
  EXPECT_EQ(served.iterations[2].start, 2 * ms);
  EXPECT_EQ(served.iterations[3].start, 5 * ms);
}

/// S38: blocks of a request in flight are in use. Requests of two blocks with room for three, on two stages: 0 needs
/// its second one while 1 is in flight.
TEST(Simulation, NobodyInFlightIsPreempted) {
  SimulationOptions options;
  options.batching.stages = 2;
  options.batching.maxSequences = 1;
  options.batching.cacheBlocks = 2;
  options.batching.admission = Admission::Chunk;
  Served served = serve({makeRequest(16, 3), makeRequest(16, 3)}, options);
  ASSERT_TRUE(served.good);
  // 0 is back at 2 ms and waits for 1, until 3 ms, whose block it takes.
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+16@0", "i1 p1+16@0", "i2 1d+1@16", "i3 1d+1@17",
                                                    "i4 p1+17@0", "i5 1d+1@17"}));
  EXPECT_EQ(served.iterations[2].start, 3 * ms);
  EXPECT_EQ(served.iterations[2].preemptions, 1);
  EXPECT_EQ(served.iterations[2].blocks, 2);
  EXPECT_EQ(served.sum(&Iteration::recomputedTokens), 16);
}

/// S30, S31: one replica computes prompts, one decodes; a cache of 8 tokens is on the way for 1 + 8 / 4 ms.
TEST(Simulation, HandsRequestsOver) {
  SimulationOptions options;
  options.prefillReplicas = 1;
  options.sendTime = 1e-3;
  options.sendTokenTime = 0.25e-3;
  options.batching.cacheBlocks = 1;
  Served served = serve({makeRequest(8, 3), makeRequest(8, 1)}, options);
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 p0+8@0", "i1 p1+8@0", "i2 1d+1@8", "i3 1d+1@9"}));
  EXPECT_EQ(served.iterations[2].replica, 1u);
  EXPECT_EQ(served.iterations[2].start, 4 * ms);
  EXPECT_EQ(served.sum(&Iteration::loadedTokens), 8);
  EXPECT_EQ(served.requests[0].request.index, 1);
  EXPECT_EQ(served.requests[0].end, 2 * ms);
  EXPECT_EQ(served.requests[1].firstToken, 1 * ms);
  EXPECT_EQ(served.requests[1].end, 6 * ms);
  EXPECT_EQ(served.requests[1].replica, 1u);
  options.sendTokenTime = 1e6;
  EXPECT_NE(serve({makeRequest(8, 3)}, options).messages.find("[bad-send-time]"), std::string::npos);
}

/// What whoever says durations must not say.
TEST(Simulation, RefusesImpossibleDurations) {
  for (double seconds :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 2e6}) {
    Served served = serve({makeRequest(8, 2)}, {}, [&](llvm::ArrayRef<Iteration>, unsigned) { return seconds; });
    EXPECT_FALSE(served.good);
    EXPECT_NE(served.messages.find("[bad-iteration-time]"), std::string::npos) << served.messages;
  }
  EXPECT_TRUE(serve({makeRequest(8, 2)}, {}, [](llvm::ArrayRef<Iteration>, unsigned) { return 0; }).good);
}

/// S26: of 1 to 200 ms, p50 is the 100th and p99 the 198th.
TEST(Simulation, PercentilesAreValues) {
  SimulationOptions options;
  ServingMetrics metrics(options);
  Iteration iteration;
  iteration.sequences.resize(1);
  metrics.step({0, 0, ms, ms, iteration});
  for (int64_t i = 200; i > 0; --i) {
    FinishedRequest done;
    done.request = makeRequest(1, 1);
    done.firstToken = done.end = i * ms;
    metrics.finished(done);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] { metrics.printJson(json); });
  EXPECT_NE(os.str().find("\"latency_s\":{\"mean\":0.1005,\"p50\":0.1,\"p99\":0.198}"), std::string::npos) << text;
  // No output has a second token.
  EXPECT_NE(text.find("\"time_per_output_token_s\":null"), std::string::npos) << text;
}
