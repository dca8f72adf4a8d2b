//===- ExposeCommunication.cpp - communication that nothing hides ---------===//
//
// Problem: what ranks send each other runs beside all compute that does not use it. Software may wait for it instead:
// Megatron-LM 2 waits for the sum of an input's gradient before it computes the weight's.
//
//   rule 4 overlap nothing over tp;
//
//   %dx = all_reduce(%p) over tp
//   %dw = linear.dw(%x, %dy) after %dx         // does not use %dx, and waits for it
//
// Algorithm: in each block the next op that computes on the main stream is put behind what was sent along axes of a
// rule, and no others, if it does not use that.
//
// Limits: what has a stream of its own (reduce-gradients, overlap-communication) stays beside compute, and what a block
// ends with is waited for by what uses it.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/ExposedCommunication.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"

using namespace stage;

namespace {
class CommunicationExposer {
public:
  CommunicationExposer(Graph &graph, const Rule &rule) : graph(graph), rule(rule) {}

  /// Whether something is sent along the axes of the rule.
  bool run() {
    for (Block &phase : graph.getPhases())
      visit(phase);
    return isUsed;
  }

private:
  void visit(Block &block) {
    llvm::SmallVector<Value *, 2> sent;
    for (const auto &op : block) {
      for (const auto &body : op->bodies)
        visit(*body);
      if (isExposedBy(graph, *op, rule)) {
        isUsed = true;
        sent.push_back(op->getResult());
      } else if (op->kind == OpKind::Compute && !op->stream && !sent.empty() && hasNode(graph, *op)) {
        for (Value *value : sent)
          if (!llvm::is_contained(op->getOperands(), value))
            op->after.push_back({value});
        sent.clear();
      }
    }
  }

  Graph &graph;
  const Rule &rule;
  bool isUsed = false;
};
} // namespace

void stage::exposeCommunication(Graph &graph, DiagnosticEngine &diags) {
  for (const Rule &rule : graph.rules)
    if (rule.kind == RuleKind::OverlapNothing && !CommunicationExposer(graph, rule).run() && graph.training)
      diags.report(rule.loc, diag::NothingToExpose) << llvm::join(listAxisNames(graph.mesh, rule.axes), ", ");
}
