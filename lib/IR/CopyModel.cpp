//===- CopyModel.cpp - a graph of its own for each plan of a model --------===//
//
// Problem: passes change a graph in place, and each plan of a model begins with the same one.
//
// Algorithm: dims, operators and streams do not change and are shared. Ops are copied in one walk;
// a second one ties them to the copies of their operands. The uses of a value keep their
// order, as passes go through them.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/Graph.h"

using namespace stage;

namespace stage {
class GraphCopier {
public:
  explicit GraphCopier(Graph &to) : to(to) {}

  void run(const Graph &from) {
    for (const Block &phase : from.getPhases())
      copyOps(phase, to.getPhase(phase.getPhase()));
    for (auto [op, copy] : ops) {
      copy->usePositions = op->usePositions;
      for (const Value *operand : op->operands)
        copy->operands.push_back(values.lookup(operand));
      if (op->origin)
        copy->origin = copies.lookup(op->origin);
      for (OrderEdge &edge : copy->after)
        edge.value = values.lookup(edge.value);
    }
    for (auto [value, copy] : values) {
      if (value->primal)
        copy->primal = values.lookup(value->primal);
      for (auto [user, operand] : value->uses)
        copy->uses.emplace_back(copies.lookup(user), operand);
    }
  }

private:
  void copyOps(const Block &from, Block &block) {
    for (auto &argument : from.getArguments())
      copyValue(*argument, *block.addArgument(argument->type, argument->path));
    for (auto &op : from) {
      Op *copy = block.append(std::make_unique<Op>(static_cast<const OpAttributes &>(*op)));
      ops.emplace_back(op.get(), copy);
      copies[op.get()] = copy;
      for (auto &result : op->getResults())
        copyValue(*result, *copy->addResult(result->type, result->path));
      for (auto &body : op->bodies)
        copyOps(*body, copy->addBody(to));
    }
  }

  void copyValue(const Value &value, Value &copy) {
    copy.constraint = value.constraint;
    copy.sharding = value.sharding;
    copy.loc = value.loc;
    values[&value] = &copy;
  }

  Graph &to;
  std::vector<std::pair<const Op *, Op *>> ops;
  llvm::DenseMap<const Op *, Op *> copies;
  llvm::DenseMap<const Value *, Value *> values;
};
} // namespace stage

void Graph::copyModel(std::shared_ptr<const Graph> from) {
  assert(dims.empty() && getForward().empty() && "the graph has no model yet");
  dims = from->dims;
  streams = from->streams;
  defs.goOnFrom(from->defs);
  GraphCopier(*this).run(*from);
  model = std::move(from);
}
