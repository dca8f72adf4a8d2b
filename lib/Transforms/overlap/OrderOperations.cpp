//===- OrderOperations.cpp - compute beside communication (idea E8) -------===//
//
// Problem: differentiation makes backward operand by operand, so that the gradient of a
// weight is done before the collective that the next layer waits for begins, and nothing
// is left to do beside it. It makes the step in the order of forward: the gradient that
// is reduced first is the one that backward completes last.
//
//   %dx = linear.dx(%dy, %w)                 %dx = linear.dx(%dy, %w)
//   %dw = linear.dw(%x, %dy)                 %r = reduce_scatter(%dx) over tp dim 1
//   accumulate(%dw, %w)                ->    %dw = linear.dw(%x, %dy)
//   %r = reduce_scatter(%dx) over tp dim 1   accumulate(%dw, %w)
//   %dn, %dg = rms_norm.grad(%n, %g, %r)     %dn, %dg = rms_norm.grad(%n, %g, %r)
//   ...
//   step: update(%embed, ...)                update(%head, ...)
//         repeat layers { ... }              repeat layers reverse { ... }
//         update(%head, ...)                 update(%embed, ...)
//
// Algorithm: in backward each run of ops that no repeat interrupts is ordered by itself
// (FillGaps.cpp): what a collective, the next iteration or another stage waits for goes
// first, and the rest where the former waits. With `overlap communication tp with gradients` in the strategy the
// gradients of a product stay together (ProductOrder.cpp). The step's ops are ordered by the last
// accumulation into the buffers that they work on; a repeat of the step runs in reverse
// where backward does.
//
// There is one order for all ranks, so that members of a group issue their collectives in
// the same order (law L13).
//
// Limits: forward keeps its order. No op passes a repeat: what it needs would be kept
// through all iterations.
//
//===----------------------------------------------------------------------===//
#include "FillGaps.h"
#include "ProductOrder.h"
#include "stage/IR/graph/Program.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class OperationOrderer {
public:
  explicit OperationOrderer(Graph &graph)
      : graph(graph), isByProduct(llvm::any_of(graph.rules, isOfGradients)), weights(graph), buffers(graph) {}

  void run() {
    for (Block &phase : graph.getPhases())
      if (isBackward(phase.getPhase())) {
        orderBackward(phase);
        findCompletion(phase);
      }
    if (Block *step = graph.findPhase(PhaseKind::Step))
      orderStep(*step);
  }

private:
  static bool isOfGradients(const Rule &rule) { return rule.kind == RuleKind::OverlapGradients; }

  void orderBackward(Block &block) {
    std::vector<std::pair<std::vector<Op *>, Op *>> runs(1);
    for (auto &op : block) {
      for (auto &body : op->bodies)
        orderBackward(*body);
      if (op->kind == OpKind::Repeat || op->kind == OpKind::Yield) {
        runs.back().second = op.get();
        runs.emplace_back();
      } else {
        runs.back().first.push_back(op.get());
      }
    }
    for (auto &[ops, end] : runs)
      rearrange(block, isByProduct ? orderByProduct(ops) : fillGaps(ops, end, weights));
  }

  /// Numbers the times at which backward completes its buffers. One that all iterations of a repeat add to is completed
  /// when the repeat is.
  void findCompletion(Block &phase) {
    auto complete = [&](const Op &op) {
      if (op.kind == OpKind::Accumulate)
        completion[buffers.getFirst(op.getResult())] = time;
    };
    for (auto &op : phase) {
      ++time;
      complete(*op);
      if (op->kind != OpKind::Repeat)
        continue;
      if (op->reverse)
        reversed.insert(op->loop);
      for (auto &body : op->bodies)
        for (auto &inner : *body) {
          ++time;
          complete(*inner);
        }
      ++time;
      for (auto &body : op->bodies)
        for (auto &inner : *body)
          if (inner->kind == OpKind::Accumulate && !getLoop(inner->getOperand(1)))
            complete(*inner);
    }
  }

  void orderStep(Block &block) {
    llvm::DenseMap<const Op *, unsigned> completed; // when backward has made what an op works on
    // Updates of shards come behind all reductions and before all that makes their parameters complete again.
    llvm::DenseMap<const Op *, unsigned> turn;
    std::vector<Op *> order;
    for (auto &owner : block) {
      Op *op = owner.get();
      if (op->kind == OpKind::Yield)
        continue;
      unsigned last = 0;
      auto await = [&](Value *value) {
        if (const Op *maker = value->getOp())
          last = std::max(last, maker->kind == OpKind::Accumulate ? completion.lookup(buffers.getFirst(value))
                                                                  : completed.lookup(maker));
      };
      turn[op] = op->kind == OpKind::Update && op->getNumResults() ? 1 : 0;
      for (const Value *operand : op->getOperands())
        if (operand->getOp() && turn.lookup(operand->getOp()))
          turn[op] = 2;
      forEachOutsideValue(*op, [&](Value *value, Op &) { await(value); });
      forEachAwaitedValue(*op, await);
      for (auto &body : op->bodies)
        Graph::walk(*body, [&](Op &inner) { forEachAwaitedValue(inner, await); });
      completed[op] = last;
      order.push_back(op);
      if (op->kind != OpKind::Repeat)
        continue;
      for (auto &body : op->bodies)
        orderStep(*body);
      op->reverse |= op->getNumOperands() == 0 && reversed.contains(op->loop);
    }
    llvm::stable_sort(
        order, [&](Op *a, Op *b) { return std::pair(turn[a], completed[a]) < std::pair(turn[b], completed[b]); });
    rearrange(block, order);
  }

  /// Brings ops that stand one behind the other into this order.
  static void rearrange(Block &block, llvm::ArrayRef<Op *> order) {
    for (size_t i = order.size(); i > 1; --i)
      block.moveBefore(order[i - 2], order[i - 1]);
  }

  Graph &graph;
  const bool isByProduct; ///< A strategy says so.
  OpWeights weights;
  GradientBuffers buffers;
  unsigned time = 0;                               ///< Counts the ops of backward.
  llvm::DenseMap<const Op *, unsigned> completion; ///< Of a buffer, by its first accumulation.
  llvm::DenseSet<unsigned> reversed;               ///< Loops that backward runs in reverse.
};
} // namespace

void stage::orderOperations(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    OperationOrderer(graph).run();
}
