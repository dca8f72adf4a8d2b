//===- Serve.cpp - requests, with a model and without ---------------------===//
//
// `stagec serve` goes through a file of requests and reports; `stagec job.stg --requests` does
// so, too, and the iterations are the units of the job.
//
// Nothing is printed before all requests are served: a fault at the end of the file leaves
// nothing that looks complete.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ServedFile.h"
#include "stage/Driver/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using namespace stage::serving;

void ServedFile::step(const Step &step) {
  metrics.step(step);
  list.step(step);
  for (const Iteration &iteration : step.iterations)
    mostBlocks = std::max(mostBlocks, iteration.blocks);
}

void ServedFile::finished(const FinishedRequest &request) {
  metrics.finished(request);
  hasPrefixes |= !request.request.prefix.empty();
}

/// `time`: as a server asks for it. False after a report.
static bool serve(const ServeCommand &command, ServedFile &served, IterationTime time, DiagnosticEngine &diags) {
  auto requests = RequestReader::open(command.input, command.ignored, diags);
  if (!requests || !simulate(*requests, command.options, time, served, diags))
    return false;
  if (command.window && served.list.empty()) {
    diags.report(SMLoc(), diag::FlagWithoutEffect)
        << "--iterations"
        << "there are " + std::to_string(served.list.getNumSteps()) + " iterations, counted from 0";
    return false;
  }
  if (command.limitsPrefixes && !served.hasPrefixes) {
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--prefix-store, --prefix-block"
                                                   << "no request names blocks of its prompt (hash_ids)";
    return false;
  }
  return true;
}

void ServedFile::print(llvm::raw_ostream &os) {
  if (command.window) {
    list.print(os);
    os << '\n';
  }
  metrics.print(os);
  if (command.usesModel)
    os << "\niterations timed on " << command.machine.describe() << ", runtime " << command.runtime.describe() << "; "
       << (insideTables ? "every" : "not every") << " op lies inside the tables of the machine\n";
  if (command.options.prefillReplicas && command.options.sendTime == 0 && command.options.sendTokenTime == 0)
    os << "\nsending caches takes no time here\n";
}

void ServedFile::printJson(llvm::json::OStream &json) {
  metrics.printJson(json);
  if (command.usesModel) {
    json.attribute("machine", command.machine.describe());
    json.attribute("runtime", command.runtime.describe());
    json.attribute("inside_tables", insideTables);
  }
  if (command.window)
    list.printJson(json);
}

bool stage::driver::runServe(const ServeCommand &command, DiagnosticEngine &diags) {
  ServedFile served(command, command.window ? command.window->second : 0);
  auto time = [&](llvm::ArrayRef<Iteration> iterations, int64_t begin, llvm::MutableArrayRef<int64_t> freeAt) {
    return passStages([&](unsigned) { return command.iterationTime; }, begin, freeAt);
  };
  if (!serve(command, served, time, diags))
    return false;
  if (command.report == ReportKind::Json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] { served.printJson(json); });
    llvm::outs() << '\n';
  } else {
    served.print(llvm::outs());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// With a model
//===----------------------------------------------------------------------===//

/// Of which a job has a unit each: what is known of them must fit into memory, however long the file is.
constexpr int64_t maxIterations = 100'000;

static PackedUnit makeUnit(const Iteration &iteration) {
  PackedUnit unit;
  unit.name = getName(iteration, /*showReplica=*/false);
  unit.decodes = llvm::all_of(iteration.sequences, [](const Sequence &sequence) { return sequence.decodes; });
  for (const Sequence &sequence : iteration.sequences)
    unit.sequences.push_back(
        {sequence.newTokens, sequence.cachedTokens, sequence.samples ? 1 + sequence.drafts : 0, sequence.request});
  for (auto [moved, parts] : {std::pair(&iteration.stored, &unit.stored), {&iteration.loaded, &unit.loaded}})
    for (const MovedTokens &tokens : *moved)
      parts->push_back({tokens.tokens, tokens.request});
  return unit;
}

std::vector<PackedUnit> stage::driver::listUnits(const ServeCommand &command, const Iteration &iteration) {
  Iteration prompts = iteration, decodes = iteration;
  llvm::erase_if(prompts.sequences, [](const Sequence &sequence) { return sequence.decodes; });
  llvm::erase_if(decodes.sequences, [](const Sequence &sequence) { return !sequence.decodes; });
  if (!command.decodesApart || prompts.sequences.empty() || decodes.sequences.empty())
    return {makeUnit(iteration)};
  decodes.stored.clear(); // before either
  decodes.loaded.clear();
  return {makeUnit(prompts), makeUnit(decodes)};
}

/// The iterations that are asked for, and the room of the caches: all blocks, or, where there is no limit, the most
/// that are held.
static std::shared_ptr<const ServedUnits> makeUnits(const ServeCommand &command, ServedFile &served,
                                                    DiagnosticEngine &diags) {
  auto result = std::make_shared<ServedUnits>();
  int64_t first = command.window ? command.window->first : 0,
          last = std::min(command.window ? command.window->second : INT64_MAX, served.list.getNumSteps());
  if (last - first > maxIterations) {
    diags.report(SMLoc(), diag::TooManyIterations) << last - first << maxIterations;
    return nullptr;
  }
  result->units.reserve(served.list.size());
  served.list.forEach(
      [&](const Iteration &iteration) { llvm::append_range(result->units, listUnits(command, iteration)); });
  if (!command.window) // they are not printed
    served.list.clear();
  const BatchingOptions &batching = command.options.batching;
  int64_t blocks = batching.cacheBlocks ? batching.cacheBlocks : served.mostBlocks;
  if (__builtin_mul_overflow(blocks, batching.block, &result->room)) {
    diags.report(SMLoc(), diag::BadServingOption) << "--cache-blocks"
                                                  << "at most " + std::to_string(INT64_MAX / batching.block) +
                                                         " blocks of " + std::to_string(batching.block) + " tokens"
                                                  << std::to_string(blocks);
    return nullptr;
  }
  result->sequences = batching.maxSequences * batching.stages;
  result->rejects = batching.drafts && batching.acceptedDrafts < batching.ofDrafts;
  return result;
}

std::shared_ptr<const ServedUnits> stage::driver::serveJob(const ServeCommand &command, ServedJob &job,
                                                           ServedFile &served, DiagnosticEngine &diags) {
  job.restart();
  auto time = [&](llvm::ArrayRef<Iteration> iterations, int64_t begin,
                  llvm::MutableArrayRef<int64_t> freeAt) -> std::optional<double> {
    if (command.usesModel) // there is one replica
      return job.run(iterations.front(), command.iterationTime, begin, freeAt);
    return passStages([&](unsigned) { return command.iterationTime; }, begin, freeAt);
  };
  if (!serve(command, served, time, diags))
    return nullptr;
  served.insideTables = job.isInsideTables();
  return makeUnits(command, served, diags);
}

ServedFile stage::driver::keepIterations(const ServeCommand &command) {
  return ServedFile(command, command.window ? std::min(command.window->second, command.window->first + maxIterations)
                                            : maxIterations);
}

bool stage::driver::runRequests(Session &session, const DriverOptions &asked) {
  DriverOptions options = asked;
  std::unique_ptr<ServedJob> job = ServedJob::create(options, session);
  if (!job)
    return false;
  const ServeCommand &command = *options.requests;
  ServedFile served = keepIterations(command);
  if (!(options.plan.served = serveJob(command, *job, served, session.getDiags())))
    return false;
  return compile(session, options, &served);
}
