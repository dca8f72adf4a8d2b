//===- ServedRequests.h - requests without a file --------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_SERVING_SERVEDREQUESTS_H
#define STAGE_UNITTESTS_SERVING_SERVEDREQUESTS_H

#include "stage/Serving/Simulation.h"
#include "llvm/Support/raw_ostream.h"

namespace stage::serving {

/// Gives requests in the order of a list.
class ListedRequests : public RequestReader {
public:
  ListedRequests(std::vector<Request> requests, DiagnosticEngine &diags)
      : RequestReader(diags), requests(std::move(requests)) {}
  std::optional<Request> next(llvm::function_ref<bool(const Request &)> check) override {
    if (taken == requests.size())
      return std::nullopt;
    Request request = requests[taken];
    request.index = int64_t(taken++);
    return check(request) ? std::optional(request) : std::nullopt;
  }
  SMLoc placeFault(const Request &) override {
    failed = true;
    return SMLoc();
  }
  bool hasErrors() const override { return failed; }

private:
  std::vector<Request> requests;
  size_t taken = 0;
  bool failed = false;
};

/// What happened, and the names of the iterations.
struct Served : ServingObserver {
  void step(const Step &step) override {
    for (const Iteration &iteration : step.iterations) {
      iterations.push_back(iteration);
      names.push_back(getName(iteration, step.iterations.size() > 1));
    }
  }
  void finished(const FinishedRequest &request) override { requests.push_back(request); }
  int64_t sum(int64_t Iteration::*member) const {
    int64_t sum = 0;
    for (const Iteration &iteration : iterations)
      sum += iteration.*member;
    return sum;
  }

  std::vector<Iteration> iterations;
  std::vector<std::string> names;
  std::vector<FinishedRequest> requests;
  std::string messages;
  bool good = false;
};

/// How long a stage takes for iterations.
using StageSeconds = llvm::function_ref<double(llvm::ArrayRef<Iteration>, unsigned stage)>;

/// Every iteration lasts a millisecond, unless it is said otherwise.
inline Served serve(
    std::vector<Request> requests, const SimulationOptions &options,
    StageSeconds duration = [](llvm::ArrayRef<Iteration>, unsigned) { return 1e-3; }) {
  Served served;
  llvm::SourceMgr sources;
  llvm::raw_string_ostream messages(served.messages);
  DiagnosticEngine diags(sources, messages);
  ListedRequests list(std::move(requests), diags);
  auto time = [&](llvm::ArrayRef<Iteration> iterations, int64_t begin, llvm::MutableArrayRef<int64_t> freeAt) {
    return passStages([&](unsigned stage) { return duration(iterations, stage); }, begin, freeAt);
  };
  served.good = simulate(list, options, time, served, diags);
  messages.flush();
  return served;
}

inline Request makeRequest(int64_t prompt, int64_t output, int64_t arrival = 0, int64_t cached = 0) {
  Request request;
  request.prompt = prompt;
  request.output = output;
  request.arrival = arrival;
  request.cached = cached;
  return request;
}

} // namespace stage::serving

#endif // STAGE_UNITTESTS_SERVING_SERVEDREQUESTS_H
