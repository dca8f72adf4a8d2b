//===- SplitCases.cpp - some iterations apart from the others -------------===//
#include "stage/IR/SplitCases.h"
#include "CopyOps.h"

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
          copies.add(*op->bodies[number], body);
        }
        op->cases = cases;
      }
    copies.tie();
    for (auto [op, copy] : copies.getOps())
      for (Value *operand : op->getOperands())
        copy->addOperand(copies.find(operand));
    addContributions();
  }

private:
  /// A param that all layers share is updated with what each case adds up.
  void addContributions() {
    for (auto [op, copy] : copies.getOps())
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
  OpCopies copies;
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
