//===- OrderGathers.cpp - parameters in the order of the next forward -----===//
//
// Problem: a step is in the order of backward, as reductions are: what forward uses first is updated last. Where
// updated shards are gathered on a stream of their own, beside the next forward, its first op then waits for all
// gathers:
//
//   step {                                          reduce {
//     repeat layers reverse {                         repeat layers reverse { %g = reduce_scatter(%dw) over dp flat }
//       %g = reduce_scatter(%dw) over dp flat         %h = reduce_scatter(%de) over dp flat
//       %n = update(%w, %g)                         }
//       write(%w, all_gather(%n) over dp flat)      step {
//     }                                      ->       %e = update(%embed, %h)
//     %h = reduce_scatter(%de) over dp flat           write(%embed, all_gather(%e) over dp flat)
//     %e = update(%embed, %h)                         repeat layers {
//     write(%embed, all_gather(%e) over dp flat)        %n = update(%w, %g)
//   }                                                   write(%w, all_gather(%n) over dp flat)
//                                                     }
//                                                   }
//
// Algorithm: reductions keep their order, in a phase before the step (SplitStep.h). In each block of the step an op
// goes where forward first uses the parameter that it updates, gathers or writes. But what is used behind the last
// repeat is updated first of all: its gradient has been complete for longest, and beside its update the last reduction
// ends, which the first gather waits for.
//
// Limits: a bucket is gathered where the last of its parameters would be.
//
//===----------------------------------------------------------------------===//
#include "OrderGathers.h"
#include "training/SplitStep.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

namespace {
class GatherOrderer {
public:
  explicit GatherOrderer(Graph &graph) : graph(graph) {}

  void run() {
    Block *step = graph.findPhase(PhaseKind::Step);
    if (!step || !gathersAside(*step))
      return;
    if (!graph.findPhase(PhaseKind::Reduce) && reduces(*step))
      splitStep(graph, *step, [](Op &, Block &) {});
    order(*step, graph.getForward());
  }

private:
  static bool gathersAside(Block &step) {
    bool any = false;
    Graph::walk(step, [&](Op &op) {
      any |= op.kind == OpKind::AllGather && op.stream && op.getOperand(0)->getOp()->kind == OpKind::Update;
    });
    return any;
  }

  /// Something stands before updates.
  static bool reduces(Block &step) {
    bool any = false;
    Graph::walk(step, [&](Op &op) { any |= op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter; });
    return any;
  }

  void order(Block &block, Block &forward) {
    llvm::DenseMap<const Op *, unsigned> position;
    llvm::DenseMap<unsigned, Op *> repeats; // of forward, by loop
    unsigned lastRepeat = 0;
    for (auto &op : forward) {
      position[op.get()] = position.size() + 1;
      if (op->kind != OpKind::Repeat)
        continue;
      repeats[op->loop] = op.get();
      lastRepeat = position[op.get()];
    }
    llvm::DenseMap<const Op *, unsigned> uses, places; // by ops of the block: where forward uses it, and where it goes
    std::vector<Op *> ops;
    for (auto &owner : block) {
      Op *op = owner.get();
      if (op->kind == OpKind::Yield)
        continue;
      unsigned use = 0;
      if (op->kind == OpKind::Repeat) {
        Op *repeat = repeats.lookup(op->loop);
        use = position.lookup(repeat);
        op->reverse = false;
        for (unsigned i = 0; repeat && i < op->bodies.size(); ++i)
          order(*op->bodies[i], *repeat->bodies[i]);
      } else if (op->kind == OpKind::Update) {
        use = findFirstUse(*op->getOperand(0), forward, position);
      } else {
        for (const Value *operand : op->getOperands())
          if (operand->getOp())
            use = std::max(use, uses.lookup(operand->getOp()));
      }
      uses[op] = use;
      places[op] = op->kind == OpKind::Update && lastRepeat && use > lastRepeat ? 0 : use;
      ops.push_back(op);
    }
    llvm::stable_sort(ops, [&](Op *a, Op *b) { return places[a] < places[b]; });
    for (size_t i = ops.size(); i > 1; --i)
      block.moveBefore(ops[i - 2], ops[i - 1]);
  }

  /// The place of the first op of the block that reads a value, in whatever form, or in which one does that.
  static unsigned findFirstUse(const Value &value, const Block &forward,
                               const llvm::DenseMap<const Op *, unsigned> &position) {
    unsigned first = ~0u;
    for (auto [user, operand] : value.getUses()) {
      if (user->getBlock()->getPhase() != PhaseKind::Forward)
        continue;
      if (isReshard(user->kind)) {
        first = std::min(first, findFirstUse(*user->getResult(operand), forward, position));
        continue;
      }
      const Op *anchor = user;
      while (anchor && anchor->getBlock() != &forward)
        anchor = anchor->getBlock()->getParent();
      if (anchor)
        first = std::min(first, position.lookup(anchor));
    }
    return first;
  }

  Graph &graph;
};
} // namespace

void stage::orderGathers(Graph &graph) { GatherOrderer(graph).run(); }
