//===- FormulaIndices.cpp - where a formula stands ------------------------===//
//
// An index that is several as one has no position of its own: it is where its members are.
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"

using namespace stage;

/// A dim holds the positions of the product of its parts, of which all but the outermost are whole.
int64_t FormulaEvaluator::getLocal(unsigned index) const {
  if (!def.indices[index].isCompound())
    return at[index];
  int64_t local = 0;
  for (unsigned member : def.indices[index].members)
    local = local * int64_t(in.positions[member].size()) + at[member];
  return local;
}

int64_t FormulaEvaluator::getPosition(unsigned index) const {
  if (!def.indices[index].isCompound())
    return in.positions[index][at[index]];
  int64_t position = 0;
  for (unsigned member : def.indices[index].members)
    position = position * in.sizes[member] + in.positions[member][at[member]];
  return position;
}

void FormulaEvaluator::setLocal(unsigned index, int64_t local) {
  if (!def.indices[index].isCompound()) {
    at[index] = local;
    return;
  }
  for (unsigned member : llvm::reverse(def.indices[index].members)) {
    int64_t size = int64_t(in.positions[member].size());
    at[member] = local % size;
    local /= size;
  }
}

void FormulaEvaluator::addStrides(unsigned index, int64_t &stride,
                                  llvm::SmallVectorImpl<std::pair<unsigned, int64_t>> &strides) const {
  llvm::SmallVector<unsigned, 4> parts = def.expand(index); // reverse() would keep a reference to one without a name
  for (unsigned part : llvm::reverse(parts)) {
    strides.emplace_back(part, stride);
    stride *= int64_t(in.positions[part].size());
  }
}

FormulaEvaluator::IndexSet FormulaEvaluator::toSet(llvm::ArrayRef<unsigned> indices) const {
  IndexSet set(def.indices.size());
  for (unsigned index : def.expand(indices))
    set.set(index);
  return set;
}
