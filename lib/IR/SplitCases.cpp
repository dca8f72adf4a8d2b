//===- SplitCases.cpp - some iterations apart from the others -------------===//
#include "stage/IR/SplitCases.h"

using namespace stage;

namespace {
class CaseSplitter {
public:
  CaseSplitter(Graph &graph, unsigned loop) : graph(graph), loop(loop) {}

  void run(const SplitCases &split, const IterationCases &cases) {
    for (Block &phase : graph.getPhases())
      for (auto &op : phase) {
        if (op->kind != OpKind::Repeat || op->loop != loop)
          continue;
        for (auto [number, added] : split.additions) {
          Block &body = op->addBody(graph);
          assert(body.getNumber() == added && "repeats of one loop have the same cases");
          (void)added;
          copyBody(*op->bodies[number], body);
        }
        op->cases = cases;
      }
    tie();
    addContributions();
  }

private:
  void copyBody(const Block &from, Block &body) {
    for (auto &argument : from.getArguments())
      copyValue(*argument, *body.addArgument(argument->type, argument->path));
    for (auto &op : from) {
      Op *copy = body.append(std::make_unique<Op>(static_cast<const OpAttributes &>(*op)));
      ops.emplace_back(op.get(), copy);
      copies[op.get()] = copy;
      for (auto &result : op->getResults())
        copyValue(*result, *copy->addResult(result->type, result->path));
    }
  }

  void copyValue(Value &value, Value &copy) {
    copy.constraint = value.constraint;
    copy.sharding = value.sharding;
    copy.primal = value.primal;
    copy.loc = value.loc;
    values[&value] = &copy;
    made.push_back(&copy);
  }

  /// The copy of what is copied, and other values as they are.
  Value *find(Value *value) const {
    Value *copy = values.lookup(value);
    return copy ? copy : value;
  }

  void tie() {
    for (auto [op, copy] : ops) {
      for (Value *operand : op->getOperands())
        copy->addOperand(find(operand));
      if (const Op *origin = copies.lookup(copy->origin))
        copy->origin = origin;
      for (OrderEdge &edge : copy->after)
        edge.value = find(edge.value);
    }
    for (Value *copy : made)
      if (copy->primal)
        copy->primal = find(copy->primal);
  }

  /// A param that all layers share is updated with what each case adds up.
  void addContributions() {
    for (auto [op, copy] : ops)
      if (op->kind == OpKind::Accumulate && op->getOperand(1) == copy->getOperand(1)) {
        llvm::SmallVector<Op *, 1> updates;
        for (auto [user, operand] : op->getResult()->getUses())
          if (user->kind == OpKind::Update)
            updates.push_back(user);
        for (Op *update : updates)
          update->addOperand(copy->getResult());
      }
  }

  Graph &graph;
  const unsigned loop;
  std::vector<std::pair<const Op *, Op *>> ops;
  std::vector<Value *> made;
  llvm::DenseMap<const Op *, Op *> copies;
  llvm::DenseMap<const Value *, Value *> values;
};
} // namespace

SplitCases stage::splitCases(Graph &graph, const Op &repeat, const std::vector<bool> &isChosen) {
  std::vector<bool> chosen(repeat.bodies.size(), false), others(chosen);
  for (size_t i = 0; i < isChosen.size(); ++i)
    (isChosen[i] ? chosen : others)[repeat.cases.get(i)] = true;
  SplitCases split;
  std::vector<unsigned> numbers(chosen.size());
  for (unsigned number = 0; number < chosen.size(); ++number) {
    numbers[number] = number;
    if (chosen[number] && others[number]) {
      numbers[number] = chosen.size() + split.additions.size();
      split.additions.emplace_back(number, numbers[number]);
    }
    if (chosen[number])
      split.chosen.push_back(numbers[number]);
  }
  if (split.additions.empty())
    return split;
  IterationCases cases;
  for (size_t i = 0; i < isChosen.size(); ++i) {
    unsigned number = repeat.cases.get(i);
    cases.append(isChosen[i] ? numbers[number] : number, 1);
  }
  CaseSplitter(graph, repeat.loop).run(split, cases);
  return split;
}
