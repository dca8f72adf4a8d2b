//===- Serve.cpp - stagec serve -------------------------------------------===//
//
// Nothing is printed before all requests are served: a fault at the end of the file leaves
// nothing that looks complete.
//
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "stage/Serving/IterationList.h"
#include "stage/Serving/Metrics.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
/// Tells the report and, if one is asked for, the list.
struct Audience : ServingObserver {
  explicit Audience(const ServeCommand &command) : metrics(command.options) {
    if (command.window)
      list.emplace(command.window->first, command.window->second, command.options.prefillReplicas + command.options.replicas > 1);
  }
  void step(const Step &step) override {
    metrics.step(step);
    if (list)
      list->step(step);
  }
  void finished(const FinishedRequest &request) override {
    metrics.finished(request);
    hasPrefixes |= !request.request.prefix.empty();
  }

  ServingMetrics metrics;
  std::optional<IterationList> list;
  bool hasPrefixes = false;
};
} // namespace

bool stage::runServe(const ServeCommand &command, DiagnosticEngine &diags) {
  auto requests = RequestReader::open(command.input, command.ignored, diags);
  if (!requests)
    return false;
  Audience audience(command);
  // Of iterations that begin together, all last as long as the slowest.
  auto lasts = [&](llvm::ArrayRef<Iteration> iterations) {
    double longest = 0;
    for (const Iteration &iteration : iterations)
      longest = std::max(longest, command.iterationTime + double(iteration.newTokens) * command.tokenTime +
                                      double(iteration.cachedTokens) * command.cachedTime +
                                      command.roofline.getSeconds(iteration));
    return longest;
  };
  if (!simulate(*requests, command.options, lasts, audience, diags))
    return false;
  if (audience.list && audience.list->empty()) {
    diags.report(SMLoc(), diag::FlagWithoutEffect)
        << "--iterations" << "there are " + std::to_string(audience.list->getNumSteps()) + " iterations, counted from 0";
    return false;
  }
  if (command.limitsPrefixes && !audience.hasPrefixes) {
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--prefix-store, --prefix-block" << "no request names blocks of its prompt (hash_ids)";
    return false;
  }
  if (command.report == ReportKind::Json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      audience.metrics.printJson(json);
      if (audience.list)
        audience.list->printJson(json);
    });
    llvm::outs() << '\n';
    return true;
  }
  if (audience.list) {
    audience.list->print(llvm::outs());
    llvm::outs() << '\n';
  }
  audience.metrics.print(llvm::outs());
  return true;
}
