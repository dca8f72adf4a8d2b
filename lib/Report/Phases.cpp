//===- Phases.cpp - prefill, decode and caches in the report --------------===//
//
// Problem: a prefill computes much on few bytes and a decode step little on many; their sum
// says of neither what limits it. And how many sequences fit is a question about caches.
//
//   phase    units           FLOPs of a unit    bytes read and written  FLOPs per byte
//   prefill      8                4.66 PFLOP                  2.88 TiB         1,473.0
//   decode   8,000  1.20 TFLOP to 1.22 TFLOP  140.86 GiB to 143.30 GiB             7.9
//
//   phase    operation   axes  group  stage  count  bytes put in of a unit           moved
//   prefill  all_reduce  tp        8  0-3       40            2.50 GiB        4.38 GiB
//
// Algorithm: a unit is what runs of one batch on all stages. Its costs are those of its stages, which makeReport
// has by environment; what is communicated is said of a rank of each stage, as bytes of several stages are not on
// one wire. A position more costs what caches are with room for one more, less what they are: a window
// that is full grows by nothing.
//
// Limits: bytes are those of ops, one by one; what a kernel keeps in its cache between two is counted twice.
//
//===----------------------------------------------------------------------===//
#include "ReportRecords.h"
#include "StageTraffic.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Walk/StageOps.h"

using namespace stage;

static const TrafficReport *findAlike(llvm::ArrayRef<TrafficReport> list, const TrafficReport &kind) {
  auto found = llvm::find_if(list, [&](const TrafficReport &other) { return isAlike(other, kind); });
  return found == list.end() ? nullptr : found;
}

/// Counts and bytes that a stage has in units of a phase, by kind. A kind that a unit has none of counts as 0 there.
static std::vector<PhaseTraffic> collectTraffic(const StageReport &stage, PhaseKind kind) {
  // What chunks of a stage do in one environment is of one unit.
  std::map<unsigned, std::vector<const StageReport::UnitCost *>> units;
  std::vector<PhaseTraffic> result;
  for (auto &[key, cost] : stage.unitCosts) {
    if (std::get<PhaseKind>(key) != kind)
      continue;
    units[std::get<2>(key)].push_back(&cost);
    for (const TrafficReport &traffic : cost.traffic)
      if (llvm::none_of(result, [&](const PhaseTraffic &known) { return isAlike(known.most, traffic); }))
        result.push_back({traffic, traffic, stage.stage, stage.stage});
  }
  for (PhaseTraffic &range : result) {
    bool isFirst = true;
    for (auto &[environment, chunks] : units) {
      __int128 count = 0, bytes = 0;
      for (const StageReport::UnitCost *chunk : chunks)
        if (const TrafficReport *traffic = findAlike(chunk->traffic, range.most)) {
          count += traffic->count;
          bytes += traffic->bytes;
        }
      range.least.count = isFirst ? count : std::min(range.least.count, count);
      range.least.bytes = isFirst ? bytes : std::min(range.least.bytes, bytes);
      range.most.count = isFirst ? count : std::max(range.most.count, count);
      range.most.bytes = isFirst ? bytes : std::max(range.most.bytes, bytes);
      isFirst = false;
    }
  }
  return result;
}

static bool areEqual(const PhaseTraffic &a, const PhaseTraffic &b) {
  auto getNumbers = [](const PhaseTraffic &range) {
    return std::array{range.least.count, range.least.bytes, range.most.count, range.most.bytes};
  };
  return isAlike(a.most, b.most) && getNumbers(a) == getNumbers(b);
}

/// Of all stages: by kind in the order of first use; neighbours with equal numbers are one.
static void addTraffic(const Report &report, PhaseReport &phase) {
  std::vector<std::vector<PhaseTraffic>> kinds;
  for (const StageReport &stage : report.stages)
    for (PhaseTraffic &range : collectTraffic(stage, phase.kind)) {
      auto known = llvm::find_if(kinds, [&](auto &ranges) { return isAlike(ranges.front().most, range.most); });
      std::vector<PhaseTraffic> &ranges = known == kinds.end() ? kinds.emplace_back() : *known;
      if (!ranges.empty() && areEqual(ranges.back(), range) && ranges.back().last + 1 == stage.stage)
        ranges.back().last = stage.stage;
      else
        ranges.push_back(std::move(range));
    }
  for (std::vector<PhaseTraffic> &ranges : kinds)
    llvm::append_range(phase.traffic, ranges);
}

static void addUnits(Report &report) {
  const Environments &environments = report.program->graph->pipeline.environments;
  using Key = std::pair<PhaseKind, unsigned>;
  std::map<Key, StageReport::UnitCost> costs;
  for (const StageReport &stage : report.stages)
    for (auto &[key, cost] : stage.unitCosts) {
      StageReport::UnitCost &sum = costs[{std::get<PhaseKind>(key), std::get<2>(key)}];
      sum.flops += cost.flops;
      sum.accessedBytes += cost.accessedBytes;
    }
  std::map<Key, int64_t> counts;
  for (const Unit &unit : report.program->stages.front().units)
    if (unit.chunk == 0 && isForward(unit.kind))
      ++counts[{unit.kind, environments.getAlike(unit.environment)}];
  for (auto [key, count] : counts) {
    const StageReport::UnitCost &cost = costs[key];
    if (report.phases.empty() || report.phases.back().kind != key.first)
      report.phases.push_back({key.first, 0, cost.flops, cost.flops, cost.accessedBytes, cost.accessedBytes, {}});
    PhaseReport &phase = report.phases.back();
    phase.units += count;
    phase.leastFlops = std::min(phase.leastFlops, cost.flops);
    phase.mostFlops = std::max(phase.mostFlops, cost.flops);
    phase.leastBytes = std::min(phase.leastBytes, cost.accessedBytes);
    phase.mostBytes = std::max(phase.mostBytes, cost.accessedBytes);
  }
  for (PhaseReport &phase : report.phases)
    addTraffic(report, phase);
}

/// Of all caches, unsharded; nothing if a size has no value.
static std::optional<__int128> sumCaches(const Report &report, const SizeBinding &binding) {
  const Graph &graph = *report.program->graph;
  __int128 bytes = 0;
  auto add = [&](const Value &cache, int64_t copies) {
    const Op &op = *cache.getOp();
    SizeValue each = evaluateCount(getLocalBytes(graph.sizes, graph.mesh, cache.type, Sharding()), binding);
    SizeValue entries = op.entries ? evaluateCount(op.entries, binding) : SizeValue{};
    if (!each || (op.entries && !entries))
      return false;
    bytes += __int128(copies) * each.value.num * (op.entries ? entries.value.num : 1);
    return true;
  };
  for (const StageProgram &stage : report.program->stages)
    for (auto [cache, copies] : collectState(graph, stage, OpKind::Cache))
      if (!add(*cache, copies))
        return std::nullopt;
  return bytes;
}

/// Caches whose positions are dealt out have room for whole rounds: so many positions.
static int64_t getRound(const Report &report) {
  const Graph &graph = *report.program->graph;
  int64_t round = 1;
  for (const StageProgram &stage : report.program->stages)
    for (auto [cache, copies] : collectState(graph, stage, OpKind::Cache))
      for (const AxisList &axes : cache->sharding.dims)
        for (const PlacedAxis &axis : axes)
          if (axis.isCyclic())
            round = graph.mesh[axis].size;
  return round;
}

static void addCaches(Report &report) {
  const Graph &graph = *report.program->graph;
  SizeBinding binding = graph.binding;
  std::optional<int64_t> room = binding.lookup(roomSymbol);
  std::optional<__int128> bytes = sumCaches(report, binding);
  if (!room || !bytes || !*bytes)
    return;
  int64_t round = getRound(report);
  binding.bind(roomSymbol, *room + round);
  std::optional<__int128> more = sumCaches(report, binding);
  report.caches = CacheReport{*bytes, more ? (*more - *bytes) / round : 0, *room, 0};
  std::optional<int64_t> sequences = graph.binding.lookup(sequencesSymbol);
  bool isPacked = llvm::any_of(graph.dims, [](auto &dim) { return dim->isPacked; }); // of as many as come
  if (!sequences || isPacked)
    return;
  report.caches->sequences = *sequences;
  for (const StageProgram &stage : report.program->stages)
    for (auto [cache, copies] : collectState(graph, stage, OpKind::Cache))
      if (const Op &op = *cache->getOp(); op.entries) {
        report.caches->sequences = *sequences * evaluateCount(op.entries, graph.binding).value.num;
        return;
      }
}

void stage::addPhases(Report &report, DiagnosticEngine &diags) {
  if (diags.hasErrors())
    return;
  addUnits(report);
  addCaches(report);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Of inference, whose forward is its prefill.
static llvm::StringRef getPhaseName(PhaseKind kind) { return kind == PhaseKind::Forward ? "prefill" : getName(kind); }

llvm::StringRef stage::describePhase(const Graph &graph, PhaseKind kind) {
  if (isBackward(kind))
    kind = PhaseKind::Backward;
  return graph.training ? getName(kind) : getPhaseName(kind);
}

std::string stage::describeUnits(const Report &report) {
  std::string text;
  for (const PhaseReport &phase : report.phases)
    text += (text.empty() ? "" : ", ") + formatCount(phase.units) + " of " + getPhaseName(phase.kind).str();
  return text;
}

std::string stage::describeCaches(const CacheReport &caches) {
  std::string positions = formatCount(caches.positions) + " positions", bytes = formatBytes(caches.bytes);
  if (!caches.sequences)
    return bytes + " for " + positions;
  return bytes + " for " + formatCount(caches.sequences) +
         (caches.sequences == 1 ? " sequence of " : " sequences of ") + positions + ", " +
         formatCount(caches.perPosition / caches.sequences) + " bytes for one position more";
}

Records stage::listRecords(const PhaseReport &phase) {
  auto countTenths = [](__int128 flops, __int128 bytes) { return bytes ? (10 * flops + bytes / 2) / bytes : 0; };
  auto formatTenths = [](__int128 tenths) { return formatCount(tenths / 10) + "." + std::to_string(int(tenths % 10)); };
  return {
      {"phase", "phase", getPhaseName(phase.kind).str()},
      {"units", "units", phase.units},
      {"flops", "FLOPs of a unit", Record::Range(phase.leastFlops, phase.mostFlops), formatFlops},
      {"bytes", "bytes read and written", Record::Range(phase.leastBytes, phase.mostBytes), formatBytes},
      {"", "FLOPs per byte",
       Record::Range(countTenths(phase.leastFlops, phase.leastBytes), countTenths(phase.mostFlops, phase.mostBytes)),
       formatTenths}};
}

std::vector<Records> stage::listTraffic(const PhaseReport &phase) {
  std::vector<Records> rows;
  for (const PhaseTraffic &range : phase.traffic) {
    Records &row = rows.emplace_back(listGroup(range.most));
    row.insert(row.end(),
               {{"first_stage", "", range.first},
                {"last_stage", "", range.last},
                {"", "stage", describeStages(range.first, range.last)},
                {"count", "count", Record::Range(range.least.count, range.most.count)},
                {"bytes", "bytes put in", Record::Range(range.least.bytes, range.most.bytes), formatBytes},
                {"moved", "moved", Record::Range(range.least.getMoved(), range.most.getMoved()), formatBytes}});
  }
  return rows;
}

void stage::printPhases(llvm::raw_ostream &os, const Report &report) {
  std::vector<Records> phases, traffic;
  for (const PhaseReport &phase : report.phases) {
    phases.push_back(listRecords(phase));
    llvm::append_range(traffic, listTraffic(phase));
  }
  if (!phases.empty())
    printTable(os << "\nphases, all ranks\n", phases, 2);
  if (!traffic.empty())
    printTable(os << "\ncommunication of a rank in a unit\n", traffic, 2);
}
