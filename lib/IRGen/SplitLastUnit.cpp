//===- SplitLastUnit.cpp - a case for the layer that is kept --------------===//
//
// Problem: `partition parameters ... by unit layers[*] { keep = last; }` speaks of the unit that forward uses last.
// Where that is the last layer of a repeat, backward does for it what it does for no other layer:
//
//   repeat layers [6] do { A }    ->    repeat layers [6] cases (0 * 5, 1) do { A } or { A }
//
// Algorithm: from the end of forward, the first op that reads a parameter of a unit, or stands in the module that a
// unit is, decides: if it is in a repeat, and the parameter is one of each layer, the last iteration becomes a case of
// its own (SplitCases.h). What rules say of some cases they say of what is split from these, too. What is kept is
// decided in lib/Transforms/KeepLastUnit.cpp.
//
//===----------------------------------------------------------------------===//
#include "SplitLastUnit.h"
#include "stage/IR/graph/ParameterUnits.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/SplitCases.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

namespace {
class LastUnitSplitter {
public:
  LastUnitSplitter(Graph &graph, const Rule &rule) : graph(graph) {
    ParameterUnits units(rule);
    graph.walk([&](Op &op) {
      auto unit = op.kind == OpKind::Param ? units.find(op.getResult()->path) : std::nullopt;
      if (!unit)
        return;
      params.insert(op.getResult());
      if (unit->first != op.getResult()->path)
        modules.insert(unit->first);
    });
  }

  void run() {
    for (auto &op : llvm::reverse(graph.getForward())) {
      if (op->kind != OpKind::Repeat) {
        if (isOfUnit(*op))
          return;
        continue;
      }
      bool usesOwn = false;
      for (auto &inner : *op->bodies[op->cases.get(std::max<int64_t>(0, op->cases.getNumIterations() - 1))]) {
        for (const Value *operand : inner->getOperands())
          if (params.contains(operand) && !getLoop(operand))
            return; // it is there until the repeat has ended
        usesOwn |= isOfUnit(*inner);
      }
      if (usesOwn)
        return split(*op);
    }
  }

private:
  bool isOfUnit(const Op &op) const {
    if (llvm::any_of(op.getOperands(), [&](const Value *operand) { return params.contains(operand); }))
      return true;
    for (llvm::StringRef scope = op.scope; op.kind == OpKind::Compute && !scope.empty(); scope = getScope(scope))
      if (modules.contains(scope))
        return true;
    return false;
  }

  void split(const Op &repeat) {
    SizeValue count = evaluateCount(repeat.count, graph.binding);
    if (!count)
      return; // said elsewhere
    SplitCases split = splitLastIteration(graph, repeat, int64_t(count.value.num));
    std::string path = joinPath(repeat.scope, repeat.name);
    for (Rule &rule : graph.rules) {
      if (!rule.cases || !rule.pattern)
        continue;
      llvm::StringRef rest = rule.pattern->getText();
      if (!rest.consume_front(path) || !(rest.empty() || rest.startswith(".")))
        continue;
      for (auto [number, added] : split.additions)
        if (llvm::is_contained(*rule.cases, number))
          rule.cases->push_back(added);
    }
  }

  Graph &graph;
  llvm::DenseSet<const Value *> params; ///< Of units.
  llvm::StringSet<> modules;            ///< Units that are modules or repeats.
};
} // namespace

void stage::splitLastUnit(Graph &graph) {
  const Rule *parameters = nullptr;
  for (const Rule &rule : graph.rules) // the last one holds
    if (rule.kind == RuleKind::PartitionParameters)
      parameters = &rule;
  if (parameters && keepsLastUnit(*parameters) && graph.mesh.getGroupSize(toSet(parameters->axes)) > 1)
    LastUnitSplitter(graph, *parameters).run();
}
