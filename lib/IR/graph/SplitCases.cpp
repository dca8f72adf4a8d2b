//===- SplitCases.cpp - some iterations apart from the others -------------===//
#include "stage/IR/graph/SplitCases.h"
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

/// `choice`: 1 for chosen iterations, 0 for others.
static SplitCases split(Graph &graph, const Op &repeat, const IterationCases &choice) {
  struct Run {
    unsigned number;
    bool isChosen;
    int64_t length;
  };
  std::vector<Run> runs; // of one case and one choice
  for (int64_t i = 0; i < choice.getNumIterations();) {
    const IterationCases::Run &chosen = choice.getRun(i);
    int64_t end = repeat.cases.getRuns().empty() ? chosen.end : std::min(chosen.end, repeat.cases.getRun(i).end);
    runs.push_back({repeat.cases.get(i), chosen.number == 1, end - i});
    i = end;
  }
  std::vector<bool> chosen(repeat.bodies.size(), false), others(chosen);
  for (const Run &run : runs)
    (run.isChosen ? chosen : others)[run.number] = true;
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
  for (const Run &run : runs)
    cases.append(run.isChosen ? numbers[run.number] : run.number, run.length);
  CaseSplitter(graph, repeat.loop).run(split, cases);
  return split;
}

SplitCases stage::splitCases(Graph &graph, const Op &repeat, const std::vector<bool> &isChosen) {
  IterationCases choice;
  for (bool chosen : isChosen)
    choice.append(chosen, 1);
  return split(graph, repeat, choice);
}

SplitCases stage::splitLastIteration(Graph &graph, const Op &repeat, int64_t count) {
  IterationCases choice;
  if (count > 1)
    choice.append(0, count - 1);
  choice.append(1, 1);
  return split(graph, repeat, choice);
}
