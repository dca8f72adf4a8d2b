//===- StageTraffic.cpp - what a rank of a stage communicates -------------===//
#include "StageTraffic.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Report/Diagnostics.h"

using namespace stage;

Spread stage::measureSpread(const Graph &graph, const SizesByEnvironment &sizes, llvm::StringRef what,
                            DiagnosticEngine &diags) {
  AxisSet axes = 0;
  std::vector<SizeBinding> bindings;
  for (auto &[environment, size] : sizes) {
    axes |= getCoordinateAxes(graph.mesh, size);
    bindings.push_back(graph.getBinding(environment));
  }
  Spread spread;
  bool isFirst = true, isGood = true;
  SizeBinding coordinates;
  forEachCoordinates(graph, axes, coordinates, [&] {
    __int128 here = 0;
    for (auto [binding, entry] : llvm::zip(bindings, sizes)) {
      binding.bind(coordinates);
      SizeValue value = evaluate(entry.second, binding);
      if (!value || !value.value.isInteger() || value.value.num < 0) {
        if (isGood)
          diags.report(graph.loc, diag::NoCost) << what << entry.second.str();
        isGood = false;
        return;
      }
      here += value.value.num;
    }
    spread.sum += here;
    spread.least = isFirst ? here : std::min(spread.least, here);
    spread.most = isFirst ? here : std::max(spread.most, here);
    isFirst = false;
  });
  spread.sum *= countAlike(graph, axes);
  return spread;
}

void stage::addTo(SizesByEnvironment &sums, unsigned environment, Size size, int64_t times) {
  Size more = size * times;
  auto [it, isNew] = sums.try_emplace(environment, more);
  if (!isNew)
    it->second = it->second + more;
}

bool stage::isAlike(const TrafficReport &a, const TrafficReport &b) {
  return a.kind == b.kind && a.isSend == b.isSend && a.axes == b.axes && a.groupSize == b.groupSize &&
         a.toPart == b.toPart && a.stages == b.stages && a.subject == b.subject && a.phase == b.phase &&
         a.types == b.types && a.axisNames == b.axisNames;
}

StageTraffic::Sum &StageTraffic::find(const TrafficReport &kind) {
  for (Sum &known : sums)
    if (isAlike(known.numbers, kind))
      return known;
  Sum &sum = sums.emplace_back(Sum{kind, {}, {}});
  sum.numbers.count = sum.numbers.bytes = sum.numbers.least = sum.numbers.agreed = 0;
  return sum;
}

void StageTraffic::add(const TrafficReport &kind, const Addend &addend, int64_t times) {
  Sum &sum = find(kind);
  sum.numbers.count += times * addend.count;
  sum.numbers.bytes += times * addend.bytes;
  sum.numbers.least += times * addend.least;
  if (!addend.ownBytes)
    return;
  addTo(sum.own, addend.environment, addend.ownBytes, times);
  addTo(sum.agreed, addend.environment, addend.agreedBytes, times);
}

void StageTraffic::add(const StageTraffic &other, int64_t times, std::optional<unsigned> environment) {
  for (const Sum &more : other.sums) {
    Sum &sum = find(more.numbers);
    sum.numbers.count += times * more.numbers.count;
    sum.numbers.bytes += times * more.numbers.bytes;
    sum.numbers.least += times * more.numbers.least;
    for (auto &[own, size] : more.own)
      addTo(sum.own, environment.value_or(own), size, times);
    for (auto &[own, size] : more.agreed)
      addTo(sum.agreed, environment.value_or(own), size, times);
  }
}

std::vector<TrafficReport> StageTraffic::measure(const Graph &graph, DiagnosticEngine &diags) const {
  std::vector<TrafficReport> result;
  for (const Sum &sum : sums) {
    TrafficReport &traffic = result.emplace_back(sum.numbers);
    if (sum.own.empty())
      continue;
    Spread spread = measureSpread(graph, sum.own, getName(traffic.kind), diags);
    traffic.agreed = traffic.bytes + measureSpread(graph, sum.agreed, getName(traffic.kind), diags).most;
    traffic.bytes += spread.most;
    traffic.least += spread.least;
  }
  return result;
}
