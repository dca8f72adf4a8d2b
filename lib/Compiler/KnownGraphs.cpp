//===- KnownGraphs.cpp - graphs that schedules have in common -------------===//
#include "stage/Compiler/KnownGraphs.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

constexpr size_t mostGraphs = 8;
/// The first pass that asks for more than which kinds of units a schedule has.
constexpr llvm::StringLiteral firstPassOfStages = "partition-pipeline";

//===----------------------------------------------------------------------===//
// What a graph is made from
//===----------------------------------------------------------------------===//

// Every field of a struct is named once, so that nobody adds one that is not compared.

static auto getFields(const PathPattern &pattern) {
  return std::tuple(llvm::StringRef(pattern.getText()), pattern.mayLack(), pattern.matchesOps(), pattern.isOfResults(),
                    pattern.isOfParameters());
}

static bool areSame(const PathPattern &a, const PathPattern &b) { return getFields(a) == getFields(b); }

static bool areSame(const Rule &a, const Rule &b) {
  const auto &[kind, pattern, dimNames, dims, lackable, axes, saysLayout, keeps, gathersAll, units, prefetch,
               bucketBytes, type, perMicrobatch, blocks, scales, dequantizes, overlap, isApart, isWhole, depth, cases,
               loc, origin, isTrimmed, calls, callLoc, statement] = a;
  auto areSamePatterns = [](const auto &x, const auto &y) { return areSame(x, y); };
  return kind == b.kind && pattern.has_value() == b.pattern.has_value() &&
         (!pattern || areSame(*pattern, *b.pattern)) &&
         std::tie(dimNames.names, dimNames.hasEllipsis, dims, lackable, axes, saysLayout, keeps, gathersAll) ==
             std::tie(b.dimNames.names, b.dimNames.hasEllipsis, b.dims, b.lackable, b.axes, b.saysLayout, b.keeps,
                      b.gathersAll) &&
         std::equal(units.begin(), units.end(), b.units.begin(), b.units.end(), areSamePatterns) &&
         std::tie(prefetch, bucketBytes, type, perMicrobatch, blocks, scales, dequantizes, overlap, isApart, isWhole) ==
             std::tie(b.prefetch, b.bucketBytes, b.type, b.perMicrobatch, b.blocks, b.scales, b.dequantizes, b.overlap,
                      b.isApart, b.isWhole) &&
         std::tie(depth, cases, loc, origin, isTrimmed, calls, callLoc, statement) ==
             std::tie(b.depth, b.cases, b.loc, b.origin, b.isTrimmed, b.calls, b.callLoc, b.statement);
}

static bool areSame(const Axis &a, const Axis &b) {
  const auto &[name, size, symbol, loc, networkDim] = a;
  return std::tie(name, size, symbol, loc, networkDim) == std::tie(b.name, b.size, b.symbol, b.loc, b.networkDim);
}

static bool areSame(const AxisGroup &a, const AxisGroup &b) {
  const auto &[name, axes, loc] = a;
  return std::tie(name, axes, loc) == std::tie(b.name, b.axes, b.loc);
}

static bool areSame(const Obligations::Obligation &a, const Obligations::Obligation &b) {
  const auto &[kind, left, right, loc, reason] = a;
  return std::tie(kind, left, right, loc, reason) == std::tie(b.kind, b.left, b.right, b.loc, b.reason);
}

static bool areSame(const Precision &a, const Precision &b) {
  const auto &[weight, activation, gradient, master, separateAccumulation] = a;
  return std::tie(weight, activation, gradient, master, separateAccumulation) ==
         std::tie(b.weight, b.activation, b.gradient, b.master, b.separateAccumulation);
}

static bool areSame(const Optimizer &a, const Optimizer &b) {
  const auto &[name, states, flops, loc] = a;
  return std::tie(name, states, flops, loc) == std::tie(b.name, b.states, b.flops, b.loc);
}

template <typename List> static bool areSameLists(const List &a, const List &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto &x, auto &y) { return areSame(x, y); });
}

/// What the passes may know of a pipeline: one unit of each kind stands for all.
static PipelineInfo withoutSchedule(const PipelineInfo &pipeline) {
  PipelineInfo left;
  left.repeats = pipeline.repeats;
  left.axis = pipeline.axis;
  left.send = pipeline.send;
  left.loc = pipeline.loc;
  std::array<bool, numPhaseKinds> runs = {};
  for (const std::vector<Unit> &units : pipeline.units)
    for (const Unit &unit : units)
      runs[unsigned(unit.kind)] = true;
  if (!pipeline.units.empty())
    left.units.emplace_back();
  for (unsigned kind = 0; kind != numPhaseKinds; ++kind)
    if (runs[kind])
      left.units.front().push_back({PhaseKind(kind)});
  return left;
}

KnownGraphs::Input::Input(const Graph &graph)
    : model(graph.model), name(graph.name), loc(graph.loc), mesh(graph.mesh), binding(graph.binding.sorted()),
      unpadded(graph.unpadded), obligations(graph.obligations.all().vec()), rules(graph.rules),
      precision(graph.precision), optimizer(graph.optimizer), pipeline(withoutSchedule(graph.pipeline)),
      prefetch(graph.prefetch), microbatches(graph.microbatches), clip(graph.clip), passes(graph.passes) {
  // Lowering a strategy takes layers apart that its rules tell apart.
  for (Block &phase : graph.getPhases())
    Graph::walk(phase, [&](Op &op) {
      if (op.kind == OpKind::Repeat)
        repeats.push_back({op.count, op.bodies.size(), op.cases});
    });
}

bool KnownGraphs::Input::operator==(const Input &other) const {
  auto getPlain = [](const Input &of) {
    return std::tie(of.model, of.name, of.loc, of.prefetch, of.microbatches, of.clip, of.unpadded, of.binding,
                    of.repeats, of.passes, of.pipeline.repeats, of.pipeline.axis, of.pipeline.send, of.pipeline.loc,
                    of.pipeline.units);
  };
  return getPlain(*this) == getPlain(other) && areSame(precision, other.precision) &&
         areSame(optimizer, other.optimizer) && areSameLists(mesh.getAxes(), other.mesh.getAxes()) &&
         areSameLists(mesh.getGroups(), other.mesh.getGroups()) && areSameLists(obligations, other.obligations) &&
         areSameLists(rules, other.rules);
}

/// What Input does not say is not there.
static bool isShared(const Graph &graph) {
  return graph.training && graph.model && graph.pipeline.environments.size() == 1 && graph.sums.empty() &&
         graph.slowRanks.empty() && !graph.mesh.isUneven() && graph.binding.sortedTables().empty();
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// A copy of a graph that the passes have run on, with what else a plan has.
static std::unique_ptr<Graph> copyFor(Graph &plan, std::shared_ptr<const Graph> known) {
  auto graph = std::make_unique<Graph>(plan.sizes);
  graph->name = plan.name;
  graph->loc = plan.loc;
  graph->mesh = std::move(plan.mesh);
  graph->binding = std::move(plan.binding);
  graph->unpadded = std::move(plan.unpadded);
  graph->obligations = plan.obligations;
  for (const Obligations::Obligation &owed : known->obligations.all())
    graph->obligations.add(owed.kind, owed.left, owed.right, owed.loc, owed.reason);
  graph->rules = std::move(plan.rules);
  graph->precision = plan.precision;
  graph->optimizer = std::move(plan.optimizer);
  graph->pipeline = std::move(plan.pipeline);
  graph->prefetch = known->prefetch;
  graph->microbatches = plan.microbatches;
  graph->clip = plan.clip;
  graph->training = plan.training;
  graph->copyModel(std::move(known));
  return graph;
}

static std::string listPasses() {
  std::string names;
  for (const PassInfo &pass : getAllPasses()) {
    if (pass.name == firstPassOfStages)
      break;
    names += (names.empty() ? "" : ",") + pass.name.str();
  }
  return names;
}

bool KnownGraphs::run(std::unique_ptr<Graph> &graph, DiagnosticEngine &diags) {
  if (!isShared(*graph))
    return true;
  Input input(*graph);
  auto found = llvm::find_if(all, [&](const Known &known) { return known.input == input; });
  if (found != all.end()) {
    ++numShared;
    graph = copyFor(*graph, found->graph);
    return true;
  }
  PassManager manager(getAllPasses(), diags, PassOptions(), llvm::errs());
  static const std::string names = listPasses();
  llvm::SmallVector<llvm::StringRef, 16> left;
  llvm::SplitString(names, left, ",");
  llvm::erase_if(left, [&](llvm::StringRef name) { return graph->hasRun(name); });
  manager.addPipeline(llvm::join(left, ","));
  unsigned messagesBefore = diags.getNumMessages();
  PipelineInfo whole = std::exchange(graph->pipeline, input.pipeline);
  bool good = manager.run(*graph);
  graph->pipeline = std::move(whole);
  if (!good || diags.getNumMessages() != messagesBefore || !isShared(*graph))
    return good;
  if (all.size() == mostGraphs)
    all.pop_front();
  std::shared_ptr<Graph> kept = std::move(graph);
  graph = copyFor(*kept, kept);
  all.push_back({std::move(input), std::move(kept)});
  return true;
}
