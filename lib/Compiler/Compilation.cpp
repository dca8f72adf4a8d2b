//===- Compilation.cpp - the phases of a compilation, one by one ----------===//
#include "stage/Compiler/Compilation.h"
#include "RuleConditions.h"
#include "stage/Compiler/Diagnostics.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Compiler/PlanStores.h"
#include "stage/Compiler/Session.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Memory/RuntimeMemory.h"
#include "stage/Memory/SimulatedAllocator.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "stage/Transforms/pipeline/CheckStageCount.h"
#include "stage/Transforms/training/LossScale.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

Compilation::Compilation(Session &session) : Compilation(session, session.getDiags()) {}

Compilation::Compilation(Session &session, DiagnosticEngine &diags)
    : session(session), diags(diags), sizes(session.getSizes()) {
  diags.setLibrary(session.getOptions().stdlibDir);
}

/// A job that serves requests has some, and no other job has.
static bool bindRequests(Compilation &c, const Plan &plan) {
  bool serves = c.job->inference && c.job->inference->servesRequests;
  if (serves && plan.servesSample) {
    int64_t numRanks = c.job->strategy.getNumRanks() / c.job->strategy.getNumStages();
    sema::serveRequests(*c.job, makeUnitsToProve(std::max<int64_t>(numRanks, 2)), c.binding);
    return true;
  }
  if (serves != bool(plan.served)) {
    c.diags.report(c.job->stepRange.Start, serves ? diag::RequestsMissing : diag::StepServesNone)
        .range(c.job->stepRange);
    return false;
  }
  if (serves)
    sema::serveRequests(*c.job, plan.served, c.binding);
  return true;
}

static bool bindPlan(Compilation &c, const Plan &plan, std::optional<int64_t> batchRanks) {
  c.binding = SizeBinding();
  c.obligations = Obligations();
  c.job = sema::bindJob(c.session.getFiles(), plan.job, plan.values, c.sizes, c.binding, c.obligations, c.diags,
                        plan.namesConstants, batchRanks);
  if (!c.job)
    return false;
  c.job->constantUnit = plan.constantUnit;
  if (c.job->inference && plan.shortLength)
    sema::shortenInference(*c.job, plan.shortLength, c.binding);
  if (c.job->inference && plan.positions)
    sema::setSequenceLength(*c.job, plan.positions, c.binding);
  if (!bindRequests(c, plan))
    return false;
  if (plan.allEquallyFast)
    llvm::erase_if(c.job->strategy.rules,
                   [](const sema::BoundRule &rule) { return llvm::isa<ast::SlowStmt>(rule.stmt); });
  return true;
}

bool stage::bindPlan(Compilation &c, const Plan &plan) {
  if (!::bindPlan(c, plan, std::nullopt))
    return false;
  // Messages about places in the library are shown at the strategy of the job, unless a call is nearer.
  const sema::BoundJob &job = *c.job;
  SMLoc strategy = job.calls.empty() ? SMLoc() : job.calls.front().range.Start;
  c.diags.setUserPlace(strategy.isValid() ? strategy : job.decl->name.loc());
  return true;
}

static bool makeGraph(Compilation &c) {
  UserPlace userPlace(c.diags, c.job->modelRange.Start);
  c.graph = generateGraph(c.session.getFiles(), *c.job, c.sizes, c.binding, c.obligations, c.diags, c.models);
  return c.graph != nullptr && !c.diags.hasErrors();
}

/// Sees that a microbatch is for the ranks among which the inputs are split. Binding knows them where a rule names the
/// dim B or the model splits an input itself. Which inputs a pattern means (`at x: [rows, d]: shard rows over dp`) is
/// known only once inputs have types and paths: such a job is bound and elaborated again if the assumption was wrong.
static bool settleBatch(Compilation &c, const Plan &plan) {
  if (c.job->batchDim.empty())
    return true;
  int64_t assumed = c.job->batchRanks, found = countRanksThatSplitInputs(*c.graph, c.job->batchDim, c.diags);
  if (found == assumed)
    return true;
  if (!::bindPlan(c, plan, found) || !makeGraph(c))
    return false;
  if (int64_t again = countRanksThatSplitInputs(*c.graph, c.job->batchDim, c.diags); again != found) {
    c.diags.report(c.job->stepRange.Start, diag::BatchUnsettled).range(c.job->stepRange) << again << found;
    return false;
  }
  return true;
}

bool stage::elaborate(Compilation &c, const Plan &plan) {
  // From here on nothing knows the syntax tree, unless a microbatch turns out to be for other ranks.
  if (!makeGraph(c) || !settleBatch(c, plan))
    return false;
  if (c.job->inference && c.job->inference->isPacked() && c.job->batchRanks > 1) {
    c.diags.report(c.job->stepRange.Start, plan.served ? diag::RequestsOfRanks : diag::LengthsOfRanks)
            .range(c.job->stepRange)
        << c.job->batchRanks;
    return false;
  }
  if (!c.job->batchDim.empty())
    checkLossScale(*c.graph, c.job->batchDim, c.diags);
  return true;
}

bool stage::runFrontEnd(Compilation &c, const Plan &plan) {
  return c.session.load() && bindPlan(c, plan) && elaborate(c, plan);
}

bool stage::runMiddle(Compilation &c, const PassOptions &passes) {
  PassManager manager(getAllPasses(), c.diags, passes, llvm::errs());
  // The model may come with its backward, made for the microbatches of another plan.
  if (c.graph->findPhase(PhaseKind::Backward))
    setGradientSeed(*c.graph);
  // Where graphs of models are kept, so are those of plans, unless somebody looks at passes.
  bool isKept =
      c.models && !passes.printAfterAll && passes.printAfter.empty() && !passes.verifyEach && !passes.timePasses;
  // Before any pass runs: a search tries hundreds of plans that have too few layers.
  bool good = checkStageCount(*c.graph, c.diags) && (!isKept || c.session.getStores().graphs.run(c.graph, c.diags));
  manager.addRemaining(*c.graph);
  if (!good || !manager.run(*c.graph) || c.diags.hasErrors()) {
    noteRuleConditions(c);
    return false;
  }
  // No op is made beyond this point.
  c.program = buildProgram(*c.graph, c.diags, &c.session.getStores().schedules);
  return c.program != nullptr;
}

/// Integers that a step is given are its tokens; of a model that takes none its samples count.
static void countTokens(const Compilation &c, StepReport &step) {
  const Graph &graph = *c.graph;
  step.areSamples = true;
  step.tokens = c.job->globalBatch;
  for (const Block &phase : graph.getPhases())
    for (const auto &op : phase)
      if (op->kind == OpKind::Input && !isFloat(op->getResult()->type.dtype)) {
        Size elements = graph.sizes.one();
        for (const Extent &extent : op->getResult()->type.shape)
          elements = elements * extent.size;
        if (SizeValue count = evaluateCount(elements, graph.binding)) {
          step.areSamples = false;
          step.tokens = count.value.num * graph.microbatches;
        }
        return;
      }
}

/// The machine of a job, filled by the ranks of both pools where another job runs beside it. Nothing after a report.
static std::optional<Machine> makeMachine(const Compilation &c) {
  std::optional<MachineRates> rates = makeRates(*c.job->machine, c.job->precision.activation.name, c.diags);
  if (!rates)
    return std::nullopt;
  Machine machine(std::move(*rates));
  if (!c.ranksOfPools)
    return machine;
  if (!machine.checkNumRanks(c.ranksOfPools, c.job->decl->name.loc(), c.diags))
    return std::nullopt;
  return machine.usedBy(c.ranksOfPools);
}

/// Whether times depend on an entry, `rail.rate = 25GB/s`, that the command line changes.
static bool changesTimes(llvm::StringRef change) {
  static constexpr llvm::StringLiteral others[] = {"memory.capacity", "host.capacity", "host.ranks", "power.", "price"};
  return llvm::none_of(others, [&](llvm::StringRef entry) { return change.startswith(entry); });
}

static StepOrigin findOrigin(const sema::BoundJob &job) {
  StepOrigin origin;
  origin.machine = job.machine->name;
  origin.machines = job.machine->libraryNames;
  for (const std::string &change : job.machine->changes)
    if (changesTimes(change))
      origin.changes.push_back("machine." + change);
  if (!job.runtime)
    return origin;
  origin.runtime = job.runtime->name;
  origin.runtimes = job.runtime->libraryNames;
  for (const std::string &change : job.runtime->changes)
    origin.changes.push_back("runtime." + change);
  origin.launches = job.runtime->launch > 0;
  return origin;
}

std::pair<__int128, __int128> stage::divideCapacity(const sema::BoundJob &job) {
  __int128 capacity = __int128(job.machine->memoryCapacity), reserved = 0;
  if (job.runtime)
    reserved = capacity * job.runtime->reserve.num / job.runtime->reserve.den;
  return {capacity - reserved, reserved};
}

std::optional<StepReport> stage::makeStepReport(Compilation &c) {
  std::optional<Machine> machine = makeMachine(c);
  if (!machine)
    return std::nullopt;
  const MachineRates *rates = machine->getRates();
  StepReport step;
  step.peakType = c.job->precision.activation.name.str();
  std::tie(step.capacity, step.reserved) = divideCapacity(*c.job);
  step.powerBusy = rates->powerBusy;
  step.powerIdle = rates->powerIdle;
  step.price = rates->price;
  llvm::StringRef missing;
  step.petaFlop = machine->ofCosts(1e15, 0, missing).value_or(0);
  Runtime runtime = makeRuntime(c.job->runtime);
  std::optional<TimeReport> time = findTimeReport({c.program.get()}, *machine, runtime, c.diags);
  if (c.diags.getShowRemarks())
    remarkKernelRules(*c.program, runtime, c.diags);
  if (!time)
    return std::nullopt;
  step.time = std::move(*time);
  countTokens(c, step);
  return step;
}

std::optional<StepBound> stage::makeStepBound(Compilation &c) {
  std::optional<StepBound> bound;
  if (std::optional<Machine> machine = makeMachine(c))
    bound.emplace(*c.program, *machine, makeRuntime(c.job->runtime), c.diags);
  if (c.diags.hasErrors())
    bound.reset();
  return bound;
}

bool stage::completeStepReport(Compilation &c, StepReport &step, bool withSensitivities) {
  std::optional<Machine> machine = makeMachine(c);
  if (!machine)
    return false;
  Runtime runtime = makeRuntime(c.job->runtime);
  if (step.time.isAssumed) {
    auto findWith = [&](const Rational &contraction) {
      return findStep({c.program.get()}, machine->withContraction(contraction), runtime, c.diags);
    };
    std::optional<Ticks> least = findWith(mostContraction), most = findWith(leastContraction);
    if (!least || !most)
      return false;
    step.range = std::minmax(*least, *most);
  }
  if (!withSensitivities)
    return true;
  step.sensitivities = findSensitivities({c.program.get()}, *machine, runtime, step.time, c.diags);
  return step.sensitivities.has_value();
}

const RuntimeMemory *stage::findRuntimeMemory(Compilation &c) {
  if (!c.memory)
    c.memory = RuntimeMemory::find(*c.program, makeRuntime(c.job->runtime), c.diags);
  return c.memory.get();
}

std::optional<Report> stage::makeReport(Compilation &c, bool withMoments) {
  const RuntimeMemory *kept = findRuntimeMemory(c);
  if (!kept)
    return std::nullopt;
  MemoryReport memory = accountMemory(*c.program, c.diags, kept, withMoments);
  if (c.diags.hasErrors())
    return std::nullopt;
  if (const Runtime runtime = makeRuntime(c.job->runtime); withMoments && runtime.allocator) {
    auto holdsLess = [](const StageMemory &a, const StageMemory &b) { return a.peak.getTotal() < b.peak.getTotal(); };
    const StageMemory &worst = *std::max_element(memory.stages.begin(), memory.stages.end(), holdsLess);
    memory.allocator =
        simulateAllocator(*c.program, worst, kept, *runtime.allocator, int64_t(divideCapacity(*c.job).first), c.diags);
  }
  return makeReport(c, std::move(memory));
}

std::optional<Report> stage::makeReport(Compilation &c, MemoryReport memory) {
  Report report = makeReport(*c.program, std::move(memory), c.diags);
  if (c.diags.hasErrors())
    return std::nullopt;
  report.job = c.job->decl->name.name.str();
  if (c.job->machine) {
    report.step = makeStepReport(c);
    if (!report.step)
      return std::nullopt;
    report.step->accuracy = findAccuracy(report, findOrigin(*c.job), c.session.getMeasured());
  }
  return report;
}
