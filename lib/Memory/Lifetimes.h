//===- Lifetimes.h - last uses inside repeat bodies ------------*- C++ -*-===//
//
// Problem: when may the tensor of a value in a repeat's body be freed?
//
// A value that forward ops only use dies after the last of them in its iteration. A
// forward value that a backward op uses is *saved*: it dies after the last such op
// in the same iteration of the backward repeat of its loop. Ops in deeper repeats
// count as the repeat that stands in the value's body.
//
// A repeat takes its carried operands when it is entered and everything else it uses
// when it is left, so there are two moments at which values die with it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_MEMORY_LIFETIMES_H
#define STAGE_LIB_MEMORY_LIFETIMES_H

#include "stage/IR/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

class Lifetimes {
public:
  explicit Lifetimes(Graph &graph);

  /// Forward values that some backward op uses.
  bool isSaved(const Value *value) const { return saved.contains(value); }
  /// Values without a use in their own block, which die where they are made.
  bool isUnused(const Value *value) const { return unused.contains(value); }
  /// Values of repeat bodies that die when `op` is entered or when it is done.
  llvm::ArrayRef<const Value *> getEntryReleases(const Op *op) const { return get(atEntry, op); }
  llvm::ArrayRef<const Value *> getReleases(const Op *op) const { return get(atEnd, op); }

private:
  using ReleaseMap = llvm::DenseMap<const Op *, llvm::SmallVector<const Value *, 2>>;
  static llvm::ArrayRef<const Value *> get(const ReleaseMap &map, const Op *op) {
    auto it = map.find(op);
    return it == map.end() ? llvm::ArrayRef<const Value *>() : llvm::ArrayRef<const Value *>(it->second);
  }
  void visitBlock(Block &block);
  void visitValue(const Value &value);

  llvm::DenseMap<const Op *, unsigned> order; ///< Position in its block.
  llvm::DenseSet<const Value *> saved, unused;
  ReleaseMap atEntry, atEnd;
};

/// The top-level block an op stands in, at any depth.
Block *getTopBlock(const Op *op);

} // namespace stage

#endif // STAGE_LIB_MEMORY_LIFETIMES_H
