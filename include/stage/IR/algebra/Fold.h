//===- Fold.h - an op that visits an index block by block ------*- C++ -*-===//
//
// `fold t` says that all of t is needed, though it may be visited in blocks, one after
// the other, with what `carrying` names going from block to block. How a block is
// merged into what came before follows from the formulas of the results:
//
//   let w  = exp(sum[e](q * key));
//   result = sum[t](w * val) / sum[t](w);
//   fold t carrying lse: f32[b, s] = log(sum[t](w));
//
// Each sum over t is that over the blocks so far, which the results tell, and that over
// the next block:
//
//   sum[t](w)        before: exp(lse.before)
//   sum[t](w * val)  before: result.before * exp(lse.before)
//
//   op attention.fold(q, key, val, result.before, lse.before) -> (
//     result = (sum[t](w * val) + result.before * exp(lse.before)) / (sum[t](w) + exp(lse.before)),
//     extra lse = log(sum[t](w) + exp(lse.before)))
//
// Algorithm: the formula of a result in which only one sum over t is unknown, and stands
// once, is solved for it; so on until all are known. In the gradient of a block the sums
// are those over all blocks, which the results of forward tell in the same way. So the gradient of an operand that
// stands outside of all sums over t is the same in every block, and counts once.
//
// Limits: no block is empty for any element: what conditions leave out, a mask says, whose rows meet themselves first.
// Sums and means only, none of which is made of another; what is solved are
// sums, products, quotients, exp, log and roots.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_FOLD_H
#define STAGE_IR_ALGEBRA_FOLD_H

#include "stage/IR/algebra/OpDef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"

namespace stage {

struct Fold {
  /// Why blocks cannot be merged; empty: they can.
  std::string fault;
  /// The op on the next block: its operands are those of the op, then `carried`.
  OpDef step;
  llvm::SmallVector<unsigned, 2> carried; ///< Results of the op.
  /// What a sum over the index has been so far, a formula of `step`'s operands without lets: `carried[solvedBy]` and
  /// those before it tell.
  struct Sum {
    const Formula *before = nullptr;
    unsigned solvedBy = 0;
  };
  llvm::SmallVector<Sum, 2> sums;
  /// The sums in the formulas of the op, by their number; equal ones have one.
  llvm::DenseMap<const Formula *, unsigned> sumNumbers;
  /// Operands of the op that stand outside of all sums over the index; those with their gradients are added up over
  /// blocks.
  llvm::SmallBitVector outside;
  /// Additions in the formulas of `step`: of a sum over a block and what the blocks before it have added up to.
  llvm::DenseSet<const Formula *> merges;
};

/// How an op folds one of its indices. Formulas are made in `defs`, where `step` is not entered.
Fold deriveFold(const OpDef &def, unsigned index, OpDefTable &defs);

/// An op that folds its index in parts, each by itself, and what merges them (FoldParts.cpp).
struct FoldParts {
  /// Why there are none; empty: there are.
  std::string fault;
  /// The op with one index more, which stands last and says of which part an element is: it is the first of all
  /// results.
  OpDef part;
  /// Makes a result of the op, or what it carries. Operands have numbers: those below the op's number of operands are
  /// the op's own, then come the results of `part` and those of the merges before, by the result of the op that they
  /// are.
  struct Merge {
    OpDef def;
    unsigned result = 0;
    llvm::SmallVector<unsigned, 4> operands, indices; ///< Indices of `part`.
  };
  std::vector<Merge> merges;
};
FoldParts deriveFoldParts(const OpDef &def, unsigned index, OpDefTable &defs);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_FOLD_H
