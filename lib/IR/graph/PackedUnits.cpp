//===- PackedUnits.cpp - what units of several sequences bind -------------===//
#include "stage/IR/graph/PackedUnits.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;

/// Lengths of requests are below 2^27 (maxTokens of stage/Serving/Requests.h), so that products of two are no problem.
static int64_t countOrFail(Size size, const SizeBinding &binding) {
  SizeValue value = evaluateCount(size, binding);
  if (!value)
    llvm::report_fatal_error(llvm::Twine("a sum over sequences has no value: ") + size.str());
  return int64_t(value.value.num);
}

static bool has(const SequenceSum &sum, llvm::StringRef symbol) {
  return llvm::is_contained(collectSymbols(sum.ofSeveral), symbol);
}

/// Of units of the other kind, or of what is copied.
static bool isOfOthers(const SequenceSum &sum, const PackedUnit &unit) {
  return has(sum, unit.decodes ? lengthSymbol : stepSymbol) || has(sum, storedSymbol) || has(sum, loadedSymbol);
}

/// Of what is copied to the host, or back, if anything is in any unit.
static void bindMoved(const Graph &graph, llvm::ArrayRef<MovedPart> parts, llvm::StringRef symbol,
                      UnitBindings &bindings) {
  if (!graph.findDim(symbol))
    return;
  int64_t all = 0;
  for (const MovedPart &part : parts)
    all += part.positions;
  bindings.emplace_back(symbol.str(), all);
  SizeBinding own = graph.binding;
  for (const SequenceSum &sum : graph.sums) {
    if (!has(sum, symbol))
      continue;
    int64_t total = 0;
    for (const MovedPart &part : parts) {
      own.bind(symbol, part.positions);
      total += countOrFail(sum.ofSeveral, own);
    }
    bindings.emplace_back(sum.symbol, total);
  }
}

/// Without sums.
static UnitBindings bindSizes(const PackedUnit &unit, int64_t taken, int64_t context, int64_t sampled) {
  UnitBindings bindings{{(unit.decodes ? stepSymbol : lengthSymbol).str(), taken}, {contextSymbol.str(), context}};
  // In decode steps all positions are wanted.
  if (!unit.decodes)
    bindings.emplace_back(sampledSymbol.str(), sampled);
  return bindings;
}

UnitBindings stage::bindPackedUnit(const Graph &graph, const PackedUnit &unit) {
  UnitBindings bindings = bindSizes(unit, unit.countTaken(), unit.countContext(), unit.countSampled());
  llvm::SmallVector<std::pair<const SequenceSum *, int64_t>, 4> totals;
  for (const SequenceSum &sum : graph.sums)
    if (!isOfOthers(sum, unit))
      totals.emplace_back(&sum, 0);
  SizeBinding own = graph.binding;
  for (const SequencePart &part : unit.sequences) {
    own.bind(bindings.front().first, part.taken);
    own.bind(contextSymbol, part.cached + part.taken);
    for (auto &[sum, total] : totals) {
      int64_t count = countOrFail(part.taken == 1 ? sum->ofOne : sum->ofSeveral, own);
      own.bind(sum->symbol, count);
      total += count;
    }
  }
  for (auto &[sum, total] : totals)
    bindings.emplace_back(sum->symbol, total);
  if (graph.findDim(presentSymbol)) {
    bindings.emplace_back(presentSymbol.str(), unit.sequences.size());
    bindings.emplace_back(resumedSymbol.str(), unit.countResumed());
  }
  bindMoved(graph, unit.stored, storedSymbol, bindings);
  bindMoved(graph, unit.loaded, loadedSymbol, bindings);
  return bindings;
}

UnitBindings stage::bindSequence(const Graph &graph, const PackedUnit &unit, const SequencePart &part) {
  PackedUnit alone;
  alone.decodes = unit.decodes;
  alone.sequences = {part};
  return bindPackedUnit(graph, alone);
}

void stage::bindPackedUnits(Graph &graph, const ServedUnits &served) {
  std::vector<UnitBindings> all;
  for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number)
    all.push_back(graph.pipeline.environments[number]);
  for (const Unit &unit : graph.pipeline.units.front()) {
    UnitBindings &bindings = all[unit.environment];
    for (auto &[symbol, value] : bindPackedUnit(graph, served.units[unit.microbatch]))
      for (auto &[name, known] : bindings)
        if (name == symbol)
          known = value;
  }
  Environments again;
  for (unsigned number = 0; number < all.size(); ++number)
    if (again.add(std::move(all[number])) != number)
      llvm::report_fatal_error("units that differed are alike");
  graph.pipeline.environments = std::move(again);
}
