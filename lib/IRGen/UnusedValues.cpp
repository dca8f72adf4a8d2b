//===- UnusedValues.cpp - values that nothing uses ------------------------===//
//
// Problem: a result that is forgotten leaves the layers before it out of the loss, and
// all that follows is right about the wrong model.
//
//   var x = lookup(tokens, embed);
//   repeat layers[L] { let h = x + attn(x); let y = h + mlp(h); }     y should be x
//   return loss(x);
//
// Algorithm: what the return reaches backwards is used; what a repeat carries is used if
// the carried value is used in an iteration or after the last. Of what is not, only the
// ends of chains are named: `y`, for `h` and the parameters are used by it. A place that
// stands for several values (of the instances of a module, or of iterations that are
// written out) is named if none of them is used.
//
// Limits: a name beginning with `_` says that this is meant. In training what nothing uses is
// computed and counted all the same, as it would be on a device. Inference erases what
// neither its output nor a cache uses: losses of routers, or in decode steps an encoder,
// whose keys and values are kept.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/Sema/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

static bool fillsCache(const Op &op) { return op.kind == OpKind::Append || op.kind == OpKind::Write; }

namespace {
class UsedValues {
public:
  explicit UsedValues(Block &phase) {
    for (Value *value : phase.getTerminator()->getOperands())
      use(value);
    Graph::walk(phase, [&](Op &op) {
      if (fillsCache(op))
        llvm::for_each(op.getOperands(), [&](Value *operand) { use(operand); });
    });
    while (!pending.empty())
      visit(*pending.pop_back_val());
  }
  bool contains(const Value *value) const { return used.count(value); }

private:
  void use(const Value *value) {
    if (used.insert(value).second)
      pending.push_back(value);
  }

  void visit(const Value &value) {
    Op *maker = value.isArgument() ? value.getBlock()->getParent() : value.getOp();
    if (maker->kind != OpKind::Repeat) {
      llvm::for_each(maker->getOperands(), [&](Value *operand) { use(operand); });
      return;
    }
    use(maker->getOperand(value.getNumber()));
    for (auto &body : maker->bodies)
      use(body->getTerminator()->getOperand(value.getNumber()));
  }

  llvm::DenseSet<const Value *> used;
  llvm::SmallVector<const Value *, 32> pending;
};
} // namespace

/// Nothing is computed from it: it is only carried on, to where nothing uses it either.
static bool isEndOfChain(const Value &value) {
  return llvm::all_of(value.getUses(), [](auto use) { return use.first->kind == OpKind::Yield; });
}

void stage::warnUnusedValues(Graph &graph, llvm::ArrayRef<NamedTensor> named, DiagnosticEngine &diags) {
  UsedValues used(graph.getForward());
  struct Place {
    ast::Ident name;
    bool isUsed = false, isEnd = false;
  };
  llvm::MapVector<const char *, Place> places;
  for (const NamedTensor &tensor : named) {
    Place &place = places[tensor.name.loc().getPointer()];
    place.name = tensor.name;
    place.isUsed |= used.contains(tensor.value);
    place.isEnd |= isEndOfChain(*tensor.value);
  }
  for (auto &[where, place] : places)
    if (!place.isUsed && place.isEnd && !place.name.name.startswith("_"))
      diags.report(place.name.loc(), diag::UnusedValue).range(place.name.range) << place.name.name;
}

/// Something reads what a repeat carries there, in an iteration or behind it.
static bool isUsedSlot(const Op &repeat, unsigned slot, const UsedValues &used) {
  return used.contains(repeat.getResult(slot)) ||
         llvm::any_of(repeat.bodies, [&](auto &body) { return used.contains(body->getArgument(slot)); });
}

static void eraseUnused(Block &block, const UsedValues &used) {
  for (auto it = block.end(); it != block.begin();) {
    Op *op = std::prev(it)->get();
    if (op->kind == OpKind::Repeat) {
      llvm::SmallVector<unsigned, 4> slots;
      for (unsigned slot = op->getNumResults(); slot-- > 0;)
        if (!isUsedSlot(*op, slot, used))
          slots.push_back(slot);
      for (auto &body : op->bodies) {
        for (unsigned slot : slots)
          body->getTerminator()->setOperand(slot, body->getArgument(slot));
        eraseUnused(*body, used);
      }
      llvm::for_each(slots, [&](unsigned slot) { op->eraseCarried(slot); });
    }
    bool isKept = op->getNumResults() == 0 || op->kind == OpKind::Repeat || fillsCache(*op) || isState(op->kind) ||
                  llvm::any_of(op->getResults(), [&](auto &result) { return used.contains(result.get()); });
    if (isKept)
      --it;
    else
      block.erase(op);
  }
}

void stage::eraseUnusedValues(Block &phase) { eraseUnused(phase, UsedValues(phase)); }
