//===- MemoryGrowth.cpp - whether memory can grow with a size -------------===//
#include "MemoryGrowth.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;
using namespace stage::driver;

SymbolValues stage::driver::listSymbols(const Graph &graph) {
  SymbolValues values;
  for (auto &[symbol, value] : graph.binding.sorted())
    values[symbol] = value;
  const Environments &environments = graph.pipeline.environments;
  for (unsigned number = 0; number < environments.size(); ++number)
    for (auto &[symbol, value] : environments[number]) {
      auto [known, isNew] = values.try_emplace(symbol, value);
      known->second = std::max(known->second, value);
    }
  return values;
}

/// Bytes of a result on a rank, of a cache those of all its entries.
static Size getBytes(const Graph &graph, const Op &op, const Value &result) {
  Size bytes = getLocalBytes(graph.sizes, graph.mesh, result.type, result.sharding, /*over=*/~AxisSet(0));
  return op.entries ? bytes * op.entries : bytes;
}

bool stage::driver::canMemoryGrow(Graph &graph, const SymbolValues &own) {
  constexpr int64_t factor = 1 << 20;
  SizeBinding now = graph.binding, far = graph.binding;
  llvm::StringSet<> moved;
  for (auto &[symbol, value] : listSymbols(graph)) {
    now.bind(symbol, value);
    far.bind(symbol, value);
    if (auto known = own.find(symbol); known != own.end() && known->second == value)
      continue;
    moved.insert(symbol);
    far.bind(symbol, value > INT64_MAX / factor ? INT64_MAX : value * factor);
  }
  bool grows = moved.empty();
  graph.walk([&](Op &op) {
    for (auto &result : op.getResults()) {
      if (grows)
        return;
      Size bytes = getBytes(graph, op, *result);
      if (llvm::none_of(collectSymbols(bytes), [&](const std::string &symbol) { return moved.contains(symbol); }))
        continue;
      SizeValue before = evaluate(bytes, now), after = evaluate(bytes, far);
      grows = !before || !after || before.value.compare(after.value) != 0;
    }
  });
  return grows;
}
