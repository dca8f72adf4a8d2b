//===- Lifetimes.h - when a tensor may be freed ----------------*- C++ -*-===//
//
// Problem: when may the tensor of a value be freed? Memory is accounted by the answer,
// and proofs free by it, so that a value freed too early is one that a proof misses.
//
// A value that only the ops of its own phase use dies after the last of them in its
// iteration. One that a later phase uses is *kept*: it dies after the last such op of
// the last phase that has one, in the same iteration of the repeat of its loop there.
//
// Microbatches that run backward as a whole have lifetimes of their own, and so have those
// that run it in halves: the phases of the others are not there for them (ChainLifetimes).
//
// Outside of repeats a value dies with the last item of its template that uses it, and
// is kept if a later template of the same microbatch does. A repeat takes its carried
// operands when it is entered and everything else it uses when it is left, so there are
// two moments at which values die with it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_LIFETIMES_H
#define STAGE_WALK_LIFETIMES_H

#include "stage/IR/graph/Program.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

class Lifetimes {
public:
  /// As if a graph did not have some of its phases.
  explicit Lifetimes(Graph &graph, llvm::ArrayRef<PhaseKind> without = {});

  /// The last phase that uses a value which its phase keeps for a later one; nothing if none does.
  std::optional<PhaseKind> getLastUser(const Value *value) const {
    auto it = lastUsers.find(value);
    return it == lastUsers.end() ? std::nullopt : std::optional<PhaseKind>(it->second);
  }
  bool isKept(const Value *value) const { return lastUsers.count(value); }
  /// Values without a use in their own block, which die where they are made.
  bool isUnused(const Value *value) const { return unused.contains(value); }
  /// Values of repeat bodies that die when `op` is done.
  llvm::ArrayRef<const Value *> getReleases(const Op *op) const {
    auto it = releases.find(op);
    return it == releases.end() ? llvm::ArrayRef<const Value *>() : llvm::ArrayRef<const Value *>(it->second);
  }

private:
  void visitBlock(Block &block);
  void visitValue(const Value &value);

  llvm::SmallVector<PhaseKind, 2> without;
  llvm::DenseMap<const Op *, unsigned> order;         ///< Position in its block.
  llvm::DenseMap<const Value *, PhaseKind> lastUsers; ///< Of what is kept.
  llvm::DenseSet<const Value *> unused;
  llvm::DenseMap<const Op *, llvm::SmallVector<const Value *, 2>> releases;
};

/// The lifetimes of what each chain of a graph's units makes.
class ChainLifetimes {
public:
  explicit ChainLifetimes(Graph &graph);
  const Lifetimes &get(const UnitChain &chain) const;

private:
  Lifetimes ofWhole; ///< Backward in one, or of a graph that has it in one way only.
  std::optional<Lifetimes> ofHalves;
};

/// When values of the top level are last used by the items of a template: 2 * item at its entry, 2 * item + 1 at its
/// end. What a send sends after iterations of its repeat is known by the name of the repeat's result.
using LastUses = llvm::DenseMap<const Value *, unsigned>;
LastUses findLastUses(llvm::ArrayRef<ProgramItem> items);
/// The same of all templates that run for a microbatch, in their order.
class ChainUses {
public:
  ChainUses(const UnitChain &chain, const Lifetimes &lifetimes) : lifetimes(lifetimes) {
    for (const UnitTemplate *unit : chain)
      uses.push_back(findLastUses(unit->items));
  }
  const LastUses &operator[](unsigned unit) const { return uses[unit]; }
  /// Of the values in repeats.
  const Lifetimes &getLifetimes() const { return lifetimes; }
  /// A unit behind this one uses the value.
  bool isUsedAfter(const Value *value, unsigned unit) const {
    return llvm::any_of(llvm::drop_begin(uses, unit + 1), [&](const LastUses &later) { return later.count(value); });
  }

private:
  const Lifetimes &lifetimes;
  std::vector<LastUses> uses;
};

} // namespace stage

#endif // STAGE_WALK_LIFETIMES_H
