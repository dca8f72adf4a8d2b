//===- UnitWalk.h - what a rank does in a unit, in order -------*- C++ -*-===//
//
// Problem: memory, proofs and traces must agree on what a rank does: which op in which
// iteration, under which names values go on, what arrives and leaves, and when a tensor
// may be freed. It is said here, once; each of them derives from UnitWalk and is told:
//
//   F1: receive layers.x @4   op rms_norm @4 ...   bind layers.x @5 <- layers.y @4   free layers.y @4 ...
//
// Algorithm: items in order, the iterations of a repeat in theirs. A repeat binds its
// carried operands to the arguments of its first iteration, unless these were received or nothing reads them;
// then what an iteration yields to the arguments of the next one, or to the results. What
// dies when a repeat is entered, with an op, with an item, or where it is made because
// nothing uses it, is freed there (Lifetimes.h).
//
// Gathers ahead (prefetched) do not run where they stand. Of those of the unit, in the order
// in which they stand, over iterations and items, the first 1 + prefetch run when the unit
// begins, and one more whenever one is released:
//
//   prefetch 1:  gather w @0  gather w @1  op ... @0  release w @0  gather w @2  op ... @1  ...
//
// Where a gather has a fetch, from the host, that runs right before it.
//
// What arrives in pieces has no name in the unit until its gather runs, behind the recv; the
// gather's result is bound to that name:
//
//   F1: receive x.piece   op all_gather   bind layers.x @4 <- x.whole   free x.piece ...
//
// What is the same in all iterations need not be walked: counts are sums over the ops of
// an item times their iterations (forEachOp in stage/IR/Program.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_UNITWALK_H
#define STAGE_WALK_UNITWALK_H

#include "stage/Walk/Lifetimes.h"

namespace stage {

/// A value in an iteration of its repeat; 0 outside of repeats.
using IterationValue = std::pair<const Value *, uint64_t>;

class UnitWalk {
public:
  virtual ~UnitWalk() = default;
  /// The iteration of what a virtual stage without iterations hands on: it belongs to none of its own.
  static constexpr uint64_t passingThrough = uint64_t(1) << 62;

protected:
  /// Walks a unit of a chain. Without the uses of its chain nothing is freed, and all results of repeats are bound.
  void walk(llvm::ArrayRef<ProgramItem> items, const ChainUses *chainUses = nullptr, unsigned place = 0);

  /// Before the items, where uses are known: when the unit uses values of the top level last.
  virtual void enterUnit(const LastUses &) {}
  /// The iteration that is walked after another one, asked when that has been walked. Who does not need all of them may
  /// leave out some.
  virtual int64_t getNextIteration(const ProgramItem &loop, int64_t iteration) {
    return iteration + (loop.op->reverse ? -1 : 1);
  }
  /// In the current iteration. Not of repeats and yields.
  virtual void visitOp(const Op &op) = 0;
  /// Value `slot` of a message.
  virtual void visitReceive(const ProgramItem &item, unsigned slot, IterationValue value) = 0;
  virtual void visitSend(const ProgramItem &item, unsigned slot, IterationValue value) = 0;
  /// `to` is another name for `from`.
  virtual void bind(IterationValue, IterationValue) {}
  virtual void free(IterationValue) {}

  /// Of the repeat that runs now; nothing outside of repeats.
  std::optional<uint64_t> getIteration() const { return iteration; }
  /// A value as an op of the current iteration means it.
  IterationValue getName(const Value *value) const { return {value, getLoop(value) ? iteration.value_or(0) : 0}; }
  /// A later unit uses a value that the current one makes.
  bool outlivesUnit(const Value *value) const;
  /// Something uses the result of an op or a repeat.
  bool isWanted(const Value *value) const;
  /// The op, which runs now, is the last that uses this operand.
  bool diesWith(const Value *operand, const Op &op) const;

private:
  /// Where the gathers ahead have come to.
  struct Prefetching {
    llvm::ArrayRef<ProgramItem> items; ///< The rest of the unit's.
    std::optional<uint64_t> iteration; ///< Of the first of these, if that has been entered.
    Block::iterator position, end;     ///< Of the rest of its body.
  };
  void startPrefetching(llvm::ArrayRef<ProgramItem> items);
  /// Runs the next gather ahead, if there is one, behind the fetch of what it gathers.
  void prefetchNext();
  const Op *findNextPrefetched();
  void walkLoop(const ProgramItem &loop, bool isFed);
  /// `range`: the iterations of the repeat that carries the message; null if the unit runs none.
  void walkGather(const ProgramItem &gather, const ProgramItem *range);
  void walkRecv(const ProgramItem &recv, const ProgramItem *range);
  void walkSend(const ProgramItem &send, const ProgramItem *range);
  void freeAll(llvm::ArrayRef<const Value *> values);
  void freeUnusedArguments(const Block &body, uint64_t iteration);

  const ChainUses *uses = nullptr;      ///< Of the current unit's chain, in which it has this place.
  const Lifetimes *lifetimes = nullptr; ///< Of that chain.
  unsigned place = 0;
  std::optional<uint64_t> iteration;
  Prefetching prefetching;
  llvm::ArrayRef<const Value *> entryReleases; ///< What dies when the current item is entered.
  unsigned itemEnd = 0;                        ///< 2 * item + 1 of the current item.
};

} // namespace stage

#endif // STAGE_WALK_UNITWALK_H
