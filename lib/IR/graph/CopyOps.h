//===- CopyOps.h - copies of ops, tied to each other -----------*- C++ -*-===//
//
// Ops are copied block by block, with their results and bodies; when all that is copied at once has been, each copy
// speaks of copies where its op spoke of what was copied: its origin, what it waits for, primals. Operands are the
// caller's.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IR_COPYOPS_H
#define STAGE_LIB_IR_COPYOPS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

class OpCopies {
public:
  /// Copies the arguments and ops of a block to the end of another one.
  void add(const Block &from, Block &to);
  void addArguments(const Block &from, Block &to);
  /// All ops but one.
  void addOps(const Block &from, Block &to, const Op *except = nullptr);
  /// What stands in place of a value that is not copied.
  void bind(const Value *value, Value *other) { copiesOfValues[value] = other; }
  void tie();

  /// Each op that was copied, in order, and its copy.
  llvm::ArrayRef<std::pair<const Op *, Op *>> getOps() const { return ops; }
  llvm::ArrayRef<std::pair<const Value *, Value *>> getValues() const { return values; }
  Op *find(const Op *op) const { return copies.lookup(op); }
  /// The copy of what is copied, and other values as they are.
  Value *find(Value *value) const {
    Value *copy = copiesOfValues.lookup(value);
    return copy ? copy : value;
  }

private:
  void copyValue(const Value &value, Value &copy);

  std::vector<std::pair<const Op *, Op *>> ops;
  std::vector<std::pair<const Value *, Value *>> values;
  llvm::DenseMap<const Op *, Op *> copies;
  llvm::DenseMap<const Value *, Value *> copiesOfValues;
};

} // namespace stage

#endif // STAGE_LIB_IR_COPYOPS_H
