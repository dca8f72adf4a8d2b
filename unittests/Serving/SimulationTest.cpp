//===- SimulationTest.cpp - replicas and time -----------------------------===//
#include "ServedRequests.h"
#include "stage/Serving/Metrics.h"
#include <gtest/gtest.h>
#include <limits>

using namespace stage;

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
  std::vector<Request> requests = {makeRequest(8, 100), makeRequest(8, 1), makeRequest(8, 100, 5 * ms), makeRequest(8, 1, 5 * ms)};
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
  EXPECT_EQ(served.names, (std::vector<std::string>{"i0 r0 p0+8@0", "i0 r1 p1+8@0", "i0 r2 idle", "i1 r0 1d+1@8", "i1 r1 idle",
                                                    "i1 r2 idle"}));
  // A request that arrives meanwhile waits for the step to end.
  served = serve({makeRequest(8, 2), makeRequest(8, 1, ms / 2)}, options);
  EXPECT_EQ(served.names[4], "i1 r1 p1+8@0");
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
  for (double seconds : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 2e6}) {
    Served served = serve({makeRequest(8, 2)}, {}, [&](llvm::ArrayRef<Iteration>) { return seconds; });
    EXPECT_FALSE(served.good);
    EXPECT_NE(served.messages.find("[bad-iteration-time]"), std::string::npos) << served.messages;
  }
  EXPECT_TRUE(serve({makeRequest(8, 2)}, {}, [](llvm::ArrayRef<Iteration>) { return 0; }).good);
}

/// S26: of 1 to 200 ms, p50 is the 100th and p99 the 198th.
TEST(Simulation, PercentilesAreValues) {
  SimulationOptions options;
  ServingMetrics metrics(options);
  Iteration iteration;
  iteration.sequences.resize(1);
  metrics.step({0, 0, ms, iteration});
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
