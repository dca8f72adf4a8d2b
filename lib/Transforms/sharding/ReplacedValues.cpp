//===- ReplacedValues.cpp - who spoke of what is no more ------------------===//
#include "ReplacedValues.h"

using namespace stage;

Value *ReplacedValues::find(const llvm::DenseMap<const Value *, Value *> &map, Value *value) {
  while (Value *next = map.lookup(value))
    value = next;
  return value;
}

void ReplacedValues::retire(Op &op, const Op *successor) {
  op.clearOperands();
  successors[&op] = successor;
  graveyard.push_back(op.getBlock()->take(&op));
}

/// The op that an origin has become, if it is one of which `op` may be the gradient, or a copy: with the same indices
/// and, of a copy, results.
static const Op *findOrigin(const Op &op, const Op *successor) {
  auto hasSameName = [](const IndexInfo &a, const IndexInfo &b) { return a.name == b.name; };
  bool fits = successor && std::equal(op.def->indices.begin(), op.def->indices.end(), successor->def->indices.begin(),
                                      successor->def->indices.end(), hasSameName);
  return fits && (!op.isRecomputed || op.getNumResults() == successor->getNumResults()) ? successor : nullptr;
}

void ReplacedValues::follow(Graph &graph) {
  auto followPrimal = [&](Value &value) { value.primal = value.primal ? find(replaced, value.primal) : nullptr; };
  graph.walk([&](Op &op) {
    for (auto &result : op.getResults())
      followPrimal(*result);
    for (auto &body : op.bodies)
      llvm::for_each(body->getArguments(), [&](auto &argument) { followPrimal(*argument); });
    if (auto retired = successors.find(op.origin); op.origin && retired != successors.end())
      op.origin = findOrigin(op, retired->second);
    llvm::SmallVector<OrderEdge, 1> after;
    for (OrderEdge edge : op.after) {
      edge.value = find(awaited, edge.value);
      auto isSame = [&](const OrderEdge &other) {
        return other.value->getOp() && other.value->getOp() == edge.value->getOp() &&
               other.iterations == edge.iterations && other.units == edge.units;
      };
      if (llvm::none_of(after, isSame))
        after.push_back(edge);
    }
    op.after.assign(after.begin(), after.end());
  });
  graveyard.clear();
}
