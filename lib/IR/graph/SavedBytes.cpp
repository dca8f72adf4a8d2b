//===- SavedBytes.cpp - what backward needs of forward, symbolically ------===//
//
// Problem: say, as one expression in the program's own symbols, what an iteration of
// a repeat keeps for backward: `34*B*D*S/tp`.
//
// Algorithm: every forward value that a backward op uses, except parameters,
// buffers and inputs, counts its local bytes once. Two values are one tensor if a repeat hands one
// to its next iteration under the other's name; a view of a tensor that is kept takes
// nothing.
//
// Limits: where a repeat has cases and only some keep what they are given, it counts in
// those that keep it, and in the one that makes it as well.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/SavedBytes.h"
#include "stage/IR/graph/Walk.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class SavedCollector {
public:
  explicit SavedCollector(Graph &graph) : graph(graph) {
    forEachValue(graph.getForward(), [&](Value &value, Op *) {
      if (llvm::any_of(value.getUses(), [](const std::pair<Op *, unsigned> &use) {
            return use.first->getBlock()->getPhase() != PhaseKind::Forward;
          }))
        kept.insert(&value);
    });
  }

  std::vector<SavedBytes> run() {
    visitBlock(graph.getForward());
    return std::move(result);
  }

private:
  void visitBlock(Block &block) {
    for (MemorySpace space : {MemorySpace::Device, MemorySpace::Host}) {
      SavedBytes saved;
      saved.loop = block.getParent();
      saved.space = space;
      if (saved.loop && saved.loop->bodies.size() > 1)
        saved.caseNumber = block.getNumber();
      for (auto &argument : block.getArguments())
        visitValue(*argument, saved);
      for (auto &op : block)
        for (auto &value : op->getResults())
          visitValue(*value, saved);
      llvm::SmallVector<Size, 16> bytes;
      for (const SavedValue &value : saved.values)
        bytes.push_back(value.bytes);
      saved.bytes = graph.sizes.sum(bytes);
      if ((saved.loop && space == MemorySpace::Device) || !saved.values.empty())
        result.push_back(std::move(saved));
    }
    for (auto &op : block)
      for (auto &body : op->bodies)
        visitBlock(*body);
  }

  void visitValue(const Value &value, SavedBytes &saved) {
    const Op *op = value.getOp();
    if (!kept.contains(&value) || value.type.space != saved.space ||
        (op && (isState(op->kind) || op->kind == OpKind::Input)))
      return;
    if (isKeptAsArgument(value) || (op && isResultOfKept(value, *op)) || isViewOfKept(value))
      return;
    saved.values.push_back({&value, getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding)});
  }

  /// What an iteration keeps under its argument's name: the next one, or the first of a repeat.
  bool isKeptAsArgument(const Value &value) const {
    for (auto [user, number] : value.getUses()) {
      const Op *loop = user->kind == OpKind::Repeat  ? user
                       : user->kind == OpKind::Yield ? user->getBlock()->getParent()
                                                     : nullptr;
      if (loop && llvm::all_of(loop->bodies, [&, number = number](auto &body) {
            return body->getArgument(number) != &value && kept.contains(body->getArgument(number));
          }))
        return true;
    }
    return false;
  }

  /// The result of a repeat whose last iteration keeps what it yields.
  bool isResultOfKept(const Value &value, const Op &op) const {
    if (op.kind != OpKind::Repeat)
      return false;
    auto runs = op.cases.getRuns();
    Block &last = *op.bodies[runs.empty() ? 0 : runs.back().number];
    return isKeptAsYielded(last.getTerminator()->getOperand(value.getNumber()), op);
  }
  bool isKeptAsYielded(const Value *yielded, const Op &loop) const {
    return kept.contains(yielded) && getLoop(yielded) == &loop && !isKeptAsArgument(*yielded);
  }

  bool isViewOfKept(const Value &value) const {
    const Value *source = &value;
    while (source->getOp() && isView(*source->getOp())) {
      source = source->getOp()->getOperand(0);
      if (kept.contains(source))
        return true;
    }
    return false;
  }

  Graph &graph;
  llvm::DenseSet<const Value *> kept; ///< Values of forward that a later phase uses.
  std::vector<SavedBytes> result;
};
} // namespace

std::vector<SavedBytes> stage::collectSavedBytes(Graph &graph) { return SavedCollector(graph).run(); }
