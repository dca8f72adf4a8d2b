//===- OpCosts.h - what classes of ranks find out once ---------*- C++ -*-===//
//
// Problem: each stage of a pipeline is a class, and all of them run the ops of one repeat. What an op costs, and how
// large it is, each of them would find again.
//
//   stage 0: loop layers [0, 20)     q = linear(x, wq)     flops 2*B*S*D*D/(dp*tp): 5.6e11
//   stage 1: loop layers [20, 40)    q = linear(x, wq)     the same
//
// Rule: the cost of an op is an expression, the same for all ranks (law L10). So is the value of a size in the units of
// one environment, on ranks whose sizes depend on no coordinate; those of other classes are found by each of them.
//
// Algorithm: costs by op; values by size, which is interned, and environment; work by op and environment. A size
// without a value is not kept: who asks reports it.
//
// Limits: of one program and one thread; the graph must not change.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_OPCOSTS_H
#define STAGE_TASKS_OPCOSTS_H

#include "stage/IR/graph/Costs.h"
#include "stage/Machine/Work.h"
#include <memory>

namespace stage {

class OpCosts {
public:
  explicit OpCosts(const Graph &graph) : graph(graph) {}

  /// As getLocalCost.
  const OpCost &getCost(const Op &op) {
    std::unique_ptr<OpCost> &cost = costs[&op];
    if (!cost)
      cost = std::make_unique<OpCost>(getLocalCost(graph, op));
    return *cost;
  }
  /// As getCoordinateAxes.
  AxisSet getAxes(Size size) {
    auto [known, isNew] = axes.try_emplace(size.getNode());
    if (isNew)
      known->second = getCoordinateAxes(graph.mesh, size);
    return known->second;
  }
  /// As evaluateCount; nothing where that fails. The binding must be that of the environment, without coordinates.
  std::optional<int64_t> findCount(Size size, const SizeBinding &binding, unsigned environment) {
    auto known = counts.find({size.getNode(), environment});
    if (known != counts.end())
      return known->second;
    SizeValue value = evaluateCount(size, binding);
    if (!value)
      return std::nullopt;
    return counts[{size.getNode(), environment}] = int64_t(value.value.num);
  }
  /// What an op does in the units of an environment, on ranks without coordinates; found by `find` the first time.
  const Work &getWork(const Op &op, unsigned environment, llvm::function_ref<Work()> find) {
    std::unique_ptr<Work> &work = works[{&op, environment}];
    if (!work)
      work = std::make_unique<Work>(find());
    return *work;
  }

private:
  const Graph &graph;
  llvm::DenseMap<const Op *, std::unique_ptr<OpCost>> costs;
  llvm::DenseMap<const SizeNode *, AxisSet> axes;
  llvm::DenseMap<std::pair<const SizeNode *, unsigned>, int64_t> counts;
  llvm::DenseMap<std::pair<const Op *, unsigned>, std::unique_ptr<Work>> works;
};

} // namespace stage

#endif // STAGE_TASKS_OPCOSTS_H
