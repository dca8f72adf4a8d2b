//===- ServedJob.cpp - how long iterations of a job last ------------------===//
//
// Problem: which iterations there are depends on how long they last, and that on what the job takes on its machine,
// which is known once it is compiled, with its iterations.
//
//   job serve { model = ...; step = infer(S = requests); machine = h100; runtime = ...; }
//
//   stagec job.stg --requests=f.jsonl
//
// Algorithm: the job is compiled with a unit of each kind, a prompt and a decode step. Their tasks stand for those of
// any iteration, whose times UnitTimer finds; then the job is compiled with its iterations. Where an iteration is two
// units, because latent attention decodes in another way, it lasts as long as both, one after the other. Caches that
// are copied to the host and back are tasks of units, so that the job is compiled once more when the first one is.
//
// Limits: the clock of a server has whole nanoseconds.
//
//===----------------------------------------------------------------------===//
#include "ServedFile.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Driver/Diagnostics.h"
#include <cmath>
#include <set>

using namespace stage;
using namespace stage::driver;
using namespace stage::serving;

/// Prompts of so many tokens, and sequences of as many that decode. There are two of each kind, as the second one has
/// one of each kind before it.
static std::shared_ptr<ServedUnits> makeUnitsOfEachKind(const BatchingOptions &batching, int64_t tokens, bool copies) {
  auto served = std::make_shared<ServedUnits>();
  for (const char *suffix : {"", " again"}) {
    served->units.push_back({std::string("prompt") + suffix, /*decodes=*/false, {{tokens, 0, 1}}});
    served->units.push_back({std::string("step") + suffix, /*decodes=*/true, {{1, tokens, 1}}});
  }
  if (copies)
    for (PackedUnit &unit : served->units)
      unit.stored = unit.loaded = {{tokens, 0}};
  // No unit has more tokens: the sizes of caches are those of what is in them.
  served->room = std::numeric_limits<int32_t>::max();
  served->sequences = batching.maxSequences;
  return served;
}

/// The ops with a mask that a phase runs, by name.
static std::set<std::string> listAttention(const Compilation &c, PhaseKind kind) {
  std::set<std::string> names;
  for (const StageProgram &stage : c.program->stages)
    forEachOp(stage.find(kind, 0)->items, [&](Op &op, int64_t) {
      if (op.def && op.def->mask)
        names.insert(llvm::StringRef(op.def->name).split('.').first.str());
    });
  return names;
}

/// The tokens of a unit do not change which tasks it has, but a model may have no positions for so many, or want them
/// to divide. Half of a power of two is tried until a size fits; else the first one says why.
bool ServedJob::compileProbe(bool withCopies) {
  size_t first = probes.size();
  copies = withCopies;
  do {
    if (compileProbeOf(tokens)) {
      probes.erase(probes.begin() + first, probes.end() - 1);
      return true;
    }
  } while (probes[first]->compilation.job && (tokens = llvm::PowerOf2Ceil(tokens) / 2));
  probes.resize(first + 1);
  return false;
}

bool ServedJob::compileProbeOf(int64_t tokens) {
  Compilation &c = probes.emplace_back(std::make_unique<Probe>(session))->compilation;
  Plan probe = options.plan;
  std::shared_ptr<ServedUnits> units = makeUnitsOfEachKind(options.requests->options.batching, tokens, copies);
  probe.served = units;
  if (!session.load() || !bindPlan(c, probe))
    return false;
  units->sequences *= c.job->strategy.getNumStages();
  if (!elaborate(c, probe))
    return false;
  const PipelineInfo &pipeline = c.graph->pipeline;
  if (usesModel(c) && pipeline.balance != Balance::None && pipeline.axis && c.graph->mesh[*pipeline.axis].size > 1) {
    c.diags.report(pipeline.loc, diag::BalancedByIterations);
    return false;
  }
  return runMiddle(c);
}

bool ServedJob::makeTimer() {
  Probe &probe = *probes.back();
  const ServeCommand &command = *options.requests;
  probe.timer = UnitTimer::create({probe.compilation.program.get(), command.machine, command.runtime}, probe.diags);
  return probe.timer != nullptr;
}

void ServedJob::printMessages() const {
  for (const Diagnostic &message : probes.back()->messages.all)
    getMessagePrinter()->handle(message, session.getSources());
}

bool ServedJob::findTimes(const Compilation &c) {
  ServeCommand &command = *options.requests;
  const auto &name = c.job->decl->name;
  command.usesModel = usesModel(c);
  if (c.job->machine) {
    std::optional<Machine> machine = findMachine(c, options);
    if (!machine)
      return false;
    command.machine = std::move(*machine);
    command.runtime = makeRuntime(c.job->runtime);
  } else if (!command.takesTime) {
    c.diags.report(name.loc(), diag::NoIterationTimeOfJob).range(name.range) << name.name;
    return false;
  } else if (!command.rates.empty() && options.emit != EmitKind::Time) {
    c.diags.report(name.loc(), diag::FlagWithoutEffect).range(name.range)
        << command.rates.front() << "job '" + name.name.str() + "' names no machine, whose rates it would replace";
    return false;
  }
  return true;
}

std::unique_ptr<ServedJob> ServedJob::create(DriverOptions &options, Session &session) {
  if (!session.load())
    return nullptr;
  std::unique_ptr<ServedJob> served(new ServedJob(options, session));
  served->tokens = options.requests->options.batching.tokenBudget;
  bool isGood = served->compileProbe(/*withCopies=*/false);
  Compilation &c = served->probes.back()->compilation;
  bool serves = c.job && c.job->inference && c.job->inference->servesRequests;
  // With times that are given, other errors are reported when the job is compiled with its iterations.
  if (!serves || (!isGood && served->usesModel(c)) || !served->findTimes(c)) {
    served->printMessages();
    return nullptr;
  }
  options.requests = served->options.requests;
  options.requests->options.batching.stages = unsigned(c.job->strategy.getNumStages());
  options.requests->decodesApart =
      isGood && listAttention(c, PhaseKind::Forward) != listAttention(c, PhaseKind::Decode);
  served->options = options;
  return served;
}

void ServedJob::restart() {
  if (UnitTimer *timer = probes.back()->timer.get())
    timer->restart();
  lastBegin = 0;
}

bool ServedJob::isInsideTables() const {
  const UnitTimer *timer = probes.back()->timer.get();
  return !timer || timer->isInsideTables();
}

std::optional<double> ServedJob::run(const Iteration &iteration, double given, int64_t begin,
                                     llvm::MutableArrayRef<int64_t> freeAt) {
  auto fail = [&] {
    printMessages();
    return std::nullopt;
  };
  std::vector<PackedUnit> units = listUnits(*options.requests, iteration);
  if (!probes.back()->timer && !makeTimer())
    return fail();
  if (!copies && llvm::any_of(units, [](auto &unit) { return !unit.stored.empty() || !unit.loaded.empty(); })) {
    const UnitTimer &before = *probes.back()->timer;
    if (!compileProbe(/*withCopies=*/true) || !makeTimer())
      return fail();
    if (!probes.back()->timer->continueFrom(before))
      return fail();
    probes.erase(probes.begin()); // the one before
  }
  UnitTimer &timer = *probes.back()->timer;
  constexpr Ticks ticksPerNano = ticksPerSecond / 1'000'000'000;
  auto toTicks = [](int64_t nanos) { return std::clamp<int64_t>(nanos, 0, maxTicks / ticksPerNano) * ticksPerNano; };
  timer.pass(toTicks(begin - lastBegin));
  lastBegin = begin;
  llvm::SmallVector<Ticks, 4> busy;
  for (int64_t free : freeAt)
    busy.push_back(toTicks(free - begin));
  std::optional<Ticks> last = timer.run(units, toTicks(std::llround(given * 1e9)), busy);
  if (!last)
    return fail();
  for (auto [free, rest] : llvm::zip(freeAt, busy))
    free = begin + rest / ticksPerNano;
  return double(*last / ticksPerNano) / 1e9;
}
