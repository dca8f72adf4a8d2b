//===- ReplacedValues.h - who spoke of what is no more ---------*- C++ -*-===//
//
// A pass that puts ops in the place of others has to tell those that speak of what was there without using it:
// gradients, of which value they are one; gradients and what makes values again, of which op they were made; ops that
// wait for another one beside their operands. All of them are told at once, when the pass is done.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_REPLACEDVALUES_H
#define STAGE_LIB_TRANSFORMS_REPLACEDVALUES_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace stage {

class ReplacedValues {
public:
  /// `to` stands for a value, whose gradient is now that of `to`.
  void replace(const Value &from, Value &to) { replaced[&from] = &to; }
  /// Who waited for a value waits for `to`.
  void await(const Value &from, Value &to) { awaited[&from] = &to; }
  /// Takes an op out of its block. What was made of it was made of `successor`, if that has the same indices; null: of
  /// nothing.
  void retire(Op &op, const Op *successor = nullptr);
  /// Tells everyone in the graph. Ops that have been retired are gone then.
  void follow(Graph &graph);

private:
  static Value *find(const llvm::DenseMap<const Value *, Value *> &map, Value *value);

  llvm::DenseMap<const Value *, Value *> replaced, awaited;
  llvm::DenseMap<const Op *, const Op *> successors;
  std::vector<std::unique_ptr<Op>> graveyard; ///< Until nothing speaks of it any more.
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_REPLACEDVALUES_H
