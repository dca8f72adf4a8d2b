//===- UnitTimes.cpp - how long iterations of a job take ------------------===//
#include "UnitTimes.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/Schedule/BalancedSplit.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace stage;
using namespace stage::driver;
using namespace stage::serving;

/// A prompt that uses the budget up, and as long a sequence that decodes.
static std::shared_ptr<const ServedUnits> makeProbe(const BatchingOptions &batching) {
  auto probe = std::make_shared<ServedUnits>();
  int64_t tokens = batching.chunk ? std::min(batching.chunk, batching.tokenBudget) : batching.tokenBudget;
  probe->units = {{"prompt", /*decodes=*/false, {{tokens, 0, 1}}}, {"step", /*decodes=*/true, {{1, tokens, 1}}}};
  probe->room = tokens + 1;
  probe->sequences = batching.maxSequences;
  return probe;
}

std::unique_ptr<UnitTimes> UnitTimes::create(const DriverOptions &options) {
  auto times = std::make_unique<UnitTimes>(options.files);
  times->roofline = options.requests->roofline;
  Plan probe = options.plan;
  probe.served = makeProbe(options.requests->options.batching);
  // What is to be said of the job beside errors is said when it is compiled with its iterations.
  times->compilation.diags.setShowWarnings(false);
  if (!runFrontEnd(times->compilation, probe))
    return nullptr;
  const PipelineInfo &pipeline = times->compilation.graph->pipeline;
  if (pipeline.balance != Balance::None && pipeline.axis && times->compilation.graph->mesh[*pipeline.axis].size > 1) {
    times->compilation.diags.report(pipeline.loc, diag::BalancedByIterations);
    return nullptr;
  }
  if (!runMiddle(times->compilation))
    return nullptr;
  times->ofPrompts = times->addUp(PhaseKind::Forward);
  times->ofSteps = times->addUp(PhaseKind::Decode);
  return times;
}

std::vector<UnitTimes::Cost> UnitTimes::addUp(PhaseKind kind) const {
  const Graph &graph = *compilation.graph;
  std::vector<Cost> costs;
  for (const StageProgram &stage : compilation.program->stages) {
    Cost &cost = costs.emplace_back(Cost{graph.sizes.zero(), graph.sizes.zero()});
    forEachOp(stage.find(kind, 0)->items, [&](Op &op, int64_t times) {
      if (isCommunication(op.kind) || isCopy(op.kind))
        return;
      OpCost once = getLocalCost(graph, op);
      cost.flops = cost.flops + once.getComputed() * times;
      cost.bytes = cost.bytes + once.bytes * times;
    });
    cost.axes = getCoordinateAxes(graph.mesh, cost.flops) | getCoordinateAxes(graph.mesh, cost.bytes);
  }
  return costs;
}

static double evaluateOrFail(Size size, const SizeBinding &binding) {
  SizeValue value = evaluate(size, binding);
  if (!value)
    llvm::report_fatal_error(llvm::Twine("an iteration has no cost: ") + size.str());
  return double(value.value.num) / double(value.value.den);
}

std::vector<double> UnitTimes::getSeconds(const PackedUnit &unit) const {
  const Graph &graph = *compilation.graph;
  SizeBinding binding = graph.binding;
  for (auto &[symbol, value] : bindPackedUnit(graph, unit))
    binding.bind(symbol, value);
  std::vector<double> ofStages;
  for (const Cost &cost : unit.decodes ? ofSteps : ofPrompts) {
    double &longest = ofStages.emplace_back(0);
    forEachCoordinates(graph, cost.axes, binding, [&] {
      double computing =
          roofline.flopsPerSecond > 0 ? evaluateOrFail(cost.flops, binding) / roofline.flopsPerSecond : 0;
      double reading = roofline.bytesPerSecond > 0 ? evaluateOrFail(cost.bytes, binding) / roofline.bytesPerSecond : 0;
      longest = std::max({longest, computing, reading});
    });
  }
  return ofStages;
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

bool stage::driver::attendsInAnotherWay(const DriverOptions &options, int64_t numRanks) {
  Session session(options.files);
  Compilation c(session);
  c.diags.setShowWarnings(false);
  Plan probe = options.plan;
  probe.served = makeUnitsToProve(std::max<int64_t>(numRanks, 2));
  return runFrontEnd(c, probe) && runMiddle(c) &&
         listAttention(c, PhaseKind::Forward) != listAttention(c, PhaseKind::Decode);
}
