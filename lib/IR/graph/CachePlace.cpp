//===- CachePlace.cpp - states that are written over ----------------------===//
#include "stage/IR/graph/CachePlace.h"

using namespace stage;

/// Whether the operator reads the operand at the position of the result only.
static bool readsInPlace(const OpDef &def, unsigned operand, unsigned result) {
  llvm::ArrayRef<unsigned> indices = def.operands[operand].indices;
  if (def.opaque || indices != llvm::ArrayRef<unsigned>(def.results[result].indices))
    return false;
  auto reads = [&](auto &self, const Formula *f) -> bool {
    for (unsigned k = 0; f->kind == Formula::Kind::Element && f->operand == operand && k < indices.size(); ++k)
      if (f->children[k]->kind != Formula::Kind::Index || f->children[k]->index != indices[k])
        return false;
    return llvm::all_of(f->children, [&](const Formula *child) { return self(self, child); });
  };
  return llvm::all_of(def.results, [&](const ResultInfo &r) { return !r.formula || reads(reads, r.formula); }) &&
         llvm::all_of(def.lets, [&](const auto &let) { return reads(reads, let.second); });
}

const Value *stage::getCacheWrittenInPlace(const Value &value) {
  const Op *op = value.getOp();
  if (!op || op->kind != OpKind::Compute || value.getUses().size() != 1)
    return nullptr;
  const Op *write = value.getUses().front().first;
  const Value *cache = write->kind == OpKind::Write ? write->getOperand(0) : nullptr;
  if (!cache || !cache->getOp() || cache->getOp()->kind != OpKind::Cache || write->getBlock() != op->getBlock())
    return nullptr;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (op->getOperand(i) == cache && !readsInPlace(*op->def, i, value.getNumber()))
      return nullptr;
  bool isBehind = false;
  for (const auto &other : *op->getBlock()) {
    if (other.get() == write)
      return cache;
    if (isBehind && llvm::is_contained(other->getOperands(), cache))
      return nullptr;
    isBehind |= other.get() == op;
  }
  return nullptr;
}
