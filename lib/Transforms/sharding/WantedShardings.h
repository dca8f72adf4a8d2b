//===- WantedShardings.h - what users want of a value ----------*- C++ -*-===//
//
// Problem: an element-wise op in front of a value that the strategy places should make
// its result there at once, not somewhere else to be moved afterwards.
//
//   %o = linear(%a, %down)          wanted {B@dp, S@tp, D}, as %y is, so that the
//   %y = add(%x, %o)  at S@tp       product is reduce-scattered and never all-reduced
//
// Algorithm: from the last op of a block to its first. A constraint on a result is
// wanted of the operands of ops that reduce nothing, sums and lookups, along the indices
// that they do not need whole; the others they want whole. A value whose users all want
// the same takes it over.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_WANTEDSHARDINGS_H
#define STAGE_TRANSFORMS_WANTEDSHARDINGS_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

/// What the users of a value agree on: axes per dim (absent: open), and axes that must not stay partial.
struct Wanted {
  llvm::SmallVector<std::optional<AxisList>, 4> dims;
  AxisSet notPartial = 0;
  AxisSet replicated = 0;
  /// Wanted by a sum: a partial value is left to it, so that partial addends are added first and reduced once.
  bool bySum = false;

  bool operator==(const Wanted &other) const {
    return dims == other.dims && notPartial == other.notPartial && replicated == other.replicated;
  }
  bool empty() const {
    return !notPartial && !replicated && llvm::none_of(dims, [](auto &dim) { return dim.has_value(); });
  }
};

/// True for element-wise ops and for those that differ from one only in that they need some indices whole: a norm, a
/// softmax. They compute where their result is wanted.
bool reducesNothing(const OpDef &def);

class WantedShardings {
public:
  explicit WantedShardings(Graph &graph);

  /// Finds what is wanted of the results of a block. What is outside of it must have its sharding.
  void visitBlock(const Block &block);

  /// What is wanted of a result of a visited block, or null.
  const Wanted *find(const Value &value) const {
    auto it = wanted.find(&value);
    return it == wanted.end() ? nullptr : &it->second;
  }
  /// The value's own constraint, if it says anything exact.
  std::optional<Wanted> getOwn(const Value &value) const;
  /// The result of a repeat has the sharding of what is carried. The gradient of what entered layers is brought to
  /// where that is (L4), once, for all that use it behind them: they get another name of it, which goes when it has had
  /// its say.
  void nameApart(Graph &graph, Value &gradient);
  /// What an op makes has copies over these axes, each of which its ranks use in another way; so has what is made of
  /// such copies element by element. Gradients of copies are addends of the gradient, and are handed on as they are:
  /// what is made of them is reduced anyway, with the gradients of what all copies were made of.
  void noteCopies(const Op &op, AxisSet axes);
  bool hasCopies(const Value &value, AxisId axis) const { return copies.lookup(&value) >> axis & 1; }
  /// Parameters do not move, nor does what is made of them only (a slice, a cast).
  bool isStationary(const Value *value) const { return stationary.contains(value); }

private:
  std::optional<Wanted> usersAgree(const Value &value) const;
  std::optional<Wanted> throughUser(const Op &user, unsigned operand) const;

  llvm::DenseMap<const Value *, Wanted> wanted;
  llvm::DenseMap<const Value *, AxisSet> copies;
  llvm::DenseSet<const Value *> stationary;
};

} // namespace stage

#endif // STAGE_TRANSFORMS_WANTEDSHARDINGS_H
