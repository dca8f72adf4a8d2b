//===- Lifetimes.h - when a tensor may be freed ----------------*- C++ -*-===//
//
// Problem: when may the tensor of a value be freed? Memory is accounted by the answer,
// and proofs free by it, so that a value freed too early is one that a proof misses.
//
// A value that forward ops only use dies after the last of them in its iteration. A
// forward value that a backward op uses is *saved*: it dies after the last such op
// in the same iteration of the backward repeat of its loop.
//
// Outside of repeats a value dies with the last item of its template that uses it. A
// repeat takes its carried operands when it is entered and everything else it uses
// when it is left, so there are two moments at which values die with it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_LIFETIMES_H
#define STAGE_MEMORY_LIFETIMES_H

#include "stage/IR/Program.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

class Lifetimes {
public:
  explicit Lifetimes(Graph &graph);

  /// Forward values that some backward op uses.
  bool isSaved(const Value *value) const { return saved.contains(value); }
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

  llvm::DenseMap<const Op *, unsigned> order; ///< Position in its block.
  llvm::DenseSet<const Value *> saved, unused;
  llvm::DenseMap<const Op *, llvm::SmallVector<const Value *, 2>> releases;
};

/// When values of the top level are last used by the items of a template: 2 * item at its entry, 2 * item + 1 at its
/// end. What a send sends after the pipelined repeat is known by the name of the repeat's result.
using LastUses = llvm::DenseMap<const Value *, unsigned>;
LastUses findLastUses(const Program &program, const std::vector<ProgramItem> &items);
/// The pipelined repeat's range in a template; null if it has none.
const ProgramItem *findPipelinedLoop(const Program &program, const std::vector<ProgramItem> &items);

} // namespace stage

#endif // STAGE_MEMORY_LIFETIMES_H
