//===- CopyOps.cpp - copies of ops, tied to each other --------------------===//
#include "CopyOps.h"

using namespace stage;

void OpCopies::add(const Block &from, Block &to) {
  addArguments(from, to);
  addOps(from, to);
}

void OpCopies::addArguments(const Block &from, Block &to) {
  for (auto &argument : from.getArguments())
    copyValue(*argument, *to.addArgument(argument->type, argument->path));
}

void OpCopies::addOps(const Block &from, Block &to, const Op *except) {
  for (auto &op : from) {
    if (op.get() == except)
      continue;
    Op *copy = to.append(std::make_unique<Op>(static_cast<const OpAttributes &>(*op)));
    ops.emplace_back(op.get(), copy);
    copies[op.get()] = copy;
    for (auto &result : op->getResults())
      copyValue(*result, *copy->addResult(result->type, result->path));
    for (auto &body : op->bodies)
      add(*body, copy->addBody(to.getGraph()));
  }
}

void OpCopies::copyValue(const Value &value, Value &copy) {
  copy.constraint = value.constraint;
  copy.sharding = value.sharding;
  copy.primal = value.primal;
  copy.loc = value.loc;
  values.emplace_back(&value, &copy);
  copiesOfValues[&value] = &copy;
}

void OpCopies::tie() {
  for (auto [op, copy] : ops) {
    if (const Op *origin = copies.lookup(copy->origin))
      copy->origin = origin;
    for (OrderEdge &edge : copy->after)
      edge.value = find(edge.value);
  }
  for (auto [value, copy] : values)
    if (copy->primal)
      copy->primal = find(copy->primal);
}
