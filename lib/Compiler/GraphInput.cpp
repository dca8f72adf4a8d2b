//===- GraphInput.cpp - all that passes know of a plan --------------------===//
#include "stage/Compiler/GraphInput.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

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

static auto getFields(const Unit &unit) {
  return std::tuple(unit.kind, unit.microbatch, unit.chunk, unit.environment, unit.feeder, unit.overlapsNext);
}

static bool areSame(const Unit &a, const Unit &b) { return getFields(a) == getFields(b); }

static bool areSame(const PipelineInfo::Placement &a, const PipelineInfo::Placement &b) {
  const auto &[name, virtualStage, loc] = a;
  return std::tie(name, virtualStage, loc) == std::tie(b.name, b.virtualStage, b.loc);
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

GraphInput::GraphInput(const Graph &graph)
    : model(graph.model), name(graph.name), loc(graph.loc), mesh(graph.mesh), binding(graph.binding.sorted()),
      unpadded(graph.unpadded), obligations(graph.obligations.all().vec()), rules(graph.rules),
      precision(graph.precision), optimizer(graph.optimizer), pipeline(withoutSchedule(graph.pipeline)),
      prefetch(graph.prefetch), microbatches(graph.microbatches), clip(graph.clip), passes(graph.passes) {
  // Lowering a strategy takes layers apart that its rules tell apart.
  for (Block &phase : graph.getPhases()) {
    bool isForwardPhase = isForward(phase.getPhase());
    Graph::walk(phase, [&](Op &op) {
      if (op.kind == OpKind::Repeat)
        (isForwardPhase ? repeats : ofBackward).push_back({op.count, op.bodies.size(), op.cases});
    });
  }
}

bool GraphInput::operator==(const GraphInput &other) const {
  auto getPlain = [](const GraphInput &of) {
    return std::tie(of.model, of.name, of.loc, of.prefetch, of.microbatches, of.clip, of.unpadded, of.binding,
                    of.repeats, of.ofBackward, of.passes, of.pipeline.repeats, of.pipeline.axis, of.pipeline.send,
                    of.pipeline.loc, of.pipeline.units);
  };
  return getPlain(*this) == getPlain(other) && areSame(precision, other.precision) &&
         areSame(optimizer, other.optimizer) && areSameLists(mesh.getAxes(), other.mesh.getAxes()) &&
         areSameLists(mesh.getGroups(), other.mesh.getGroups()) && areSameLists(obligations, other.obligations) &&
         areSameLists(rules, other.rules);
}

bool GraphInput::isComplete(const Graph &graph) {
  return graph.training && graph.model && graph.pipeline.environments.size() == 1 && graph.sums.empty() &&
         graph.slowRanks.empty() && !graph.mesh.isUneven() && graph.binding.sortedTables().empty();
}

void GraphInput::dropGradients() {
  model = nullptr;
  passes.clear();
  ofBackward.clear();
  // With a type, gradients are cast in backward. Where each microbatch reduces them, products no longer add them to a
  // buffer, so that their kernels move other bytes.
  llvm::erase_if(rules, [](const Rule &rule) {
    return rule.kind == RuleKind::PartitionOptimizer ||
           (rule.kind == RuleKind::ReduceGradients && !rule.type && !rule.perMicrobatch && !rule.isApart);
  });
  // Statements are numbered with those that are left out.
  llvm::DenseMap<unsigned, unsigned> numbers;
  for (Rule &rule : rules)
    rule.statement = numbers.try_emplace(rule.statement, numbers.size()).first->second;
}

bool stage::haveSameSchedule(const PipelineInfo &a, const PipelineInfo &b) {
  const auto &[repeats, axis, chunks, placement, copies, split, balance, placements, send, scatterGather, units,
               environments, unitNames, scheduleName, loc] = a;
  return std::tie(repeats, axis, chunks, placement, copies, split, balance, send, scatterGather, unitNames,
                  scheduleName, loc) == std::tie(b.repeats, b.axis, b.chunks, b.placement, b.copies, b.split, b.balance,
                                                 b.send, b.scatterGather, b.unitNames, b.scheduleName, b.loc) &&
         environments.size() == b.environments.size() && areSameLists(placements, b.placements) &&
         std::equal(units.begin(), units.end(), b.units.begin(), b.units.end(),
                    [](const std::vector<Unit> &x, const std::vector<Unit> &y) { return areSameLists(x, y); });
}
