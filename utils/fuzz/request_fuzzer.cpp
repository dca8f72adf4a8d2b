//===- request_fuzzer.cpp - no request file crashes the server ------------===//
//
// Serves arbitrary text as a request file, with options that are drawn from its first bytes. It fails if, and only if,
// an error was reported. Else each request is complete once, in time, and each iteration keeps its limits.
//
//===----------------------------------------------------------------------===//
#include "stage/Serving/Simulation.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/mman.h>
#include <unistd.h>

using namespace stage;
using namespace stage::serving;

namespace {
void check(bool holds, const char *what) {
  if (!holds)
    llvm::report_fatal_error(what);
}

/// Outputs of a billion tokens are served, but not while somebody waits.
class ShortRequests : public RequestReader {
public:
  ShortRequests(std::unique_ptr<RequestReader> reader, DiagnosticEngine &diags)
      : RequestReader(diags), reader(std::move(reader)) {}
  std::optional<Request> next(llvm::function_ref<bool(const Request &)> isGood) override {
    bool accepted = true;
    std::optional<Request> request = reader->next([](const Request &) { return true; });
    if (request) {
      request->output = 1 + request->output % 50;
      request->prompt = 1 + request->prompt % 500;
      request->cached = std::min(request->cached, request->prompt);
      accepted = isGood(*request);
      ++count;
    }
    return accepted ? request : std::nullopt;
  }
  SMLoc placeFault(const Request &request) override { return reader->placeFault(request); }
  bool hasErrors() const override { return reader->hasErrors(); }

  int64_t count = 0;

private:
  std::unique_ptr<RequestReader> reader;
};

struct Checker : ServingObserver {
  explicit Checker(const SimulationOptions &options) : batching(options.batching) {}
  void step(const Step &step) override {
    for (const Iteration &iteration : step.iterations) {
      check(iteration.newTokens <= batching.tokenBudget, "more tokens than the budget");
      check(int64_t(iteration.sequences.size()) <= batching.maxSequences, "more sequences than may run");
      check(!batching.cacheBlocks || iteration.blocks <= batching.cacheBlocks, "more blocks than there are");
      check(!getName(iteration, true).empty(), "no name");
      check(iteration.start >= latest, "time goes back");
      latest = iteration.start;
    }
  }
  void finished(const FinishedRequest &done) override {
    ++count;
    check(done.request.arrival <= done.start && done.start < done.firstToken && done.firstToken <= done.end,
          "not in order");
    check(done.accepted <= done.drafts, "more drafts are accepted than there were");
  }

  BatchingOptions batching;
  int64_t latest = 0, count = 0;
};

/// The text as a file that is gone when this is.
struct MemoryFile {
  int number = memfd_create("requests", 0);
  std::string path = "/proc/self/fd/" + std::to_string(number);
  explicit MemoryFile(llvm::StringRef text) {
    check(number >= 0 && ::write(number, text.data(), text.size()) == ssize_t(text.size()), "no file in memory");
  }
  ~MemoryFile() { ::close(number); }
};
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr size_t numOptions = 8;
  if (size < numOptions)
    return 0;
  SimulationOptions options;
  BatchingOptions &batching = options.batching;
  batching.drafts = data[0] % 4;
  batching.ofDrafts = 4;
  batching.acceptedDrafts = data[0] / 4 % 5;
  batching.tokenBudget = 4 + data[1];
  batching.maxSequences = 1 + data[2] % 8;
  batching.chunk = data[2] & 64 ? 4 + data[2] / 8 % 8 : 0;
  batching.block = 1 + data[3] % 17;
  batching.cacheBlocks = data[3] & 128 ? 1 + 4 * data[4] : 0;
  batching.preemption = Preemption(data[5] % 3);
  batching.admission = Admission(data[5] / 3 % 2);
  batching.prefixBlock = 1 + data[5] / 6 % 16;
  batching.prefixStore = int64_t(data[6] % 8) - 1;
  options.replicas = 1 + data[7] % 3;
  options.prefillReplicas = data[7] / 3 % 3;
  options.lockStep = data[7] / 9 % 2;
  options.dealing = Dealing(data[7] / 18 % 2);
  options.sendTokenTime = data[7] / 36 * 1e-6;

  std::string messages;
  llvm::raw_string_ostream os(messages);
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, os);
  MemoryFile file(llvm::StringRef(reinterpret_cast<const char *>(data), size).drop_front(numOptions));
  auto reader = RequestReader::open(file.path, {}, diags);
  check(reader != nullptr, "a file in memory cannot be read");
  ShortRequests requests(std::move(reader), diags);
  Checker checker(options);
  auto time = [](llvm::ArrayRef<Iteration>, int64_t begin, llvm::MutableArrayRef<int64_t> freeAt) {
    return passStages([](unsigned) { return 1e-3; }, begin, freeAt);
  };
  bool isGood = simulate(requests, options, time, checker, diags);
  check(isGood != diags.hasErrors(), "serving fails if, and only if, an error is reported");
  check(!isGood || checker.count == requests.count, "a request is not complete");
  return 0;
}
