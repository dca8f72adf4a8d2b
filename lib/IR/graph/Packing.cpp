//===- Packing.cpp - several sequences in one dim -------------------------===//
//
// What an op may do with packed dims (Packing.h).
// Ops that route tokens look at tokens only: slots are for tokens of all sequences.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Packing.h"
#include "stage/IR/graph/CachePlace.h"
#include "stage/Schedule/InferenceSymbols.h"

using namespace stage;

const SequenceSum *stage::findSum(const Graph &graph, const SequenceSum &wanted) {
  for (const SequenceSum &sum : graph.sums)
    if (sum.ofSeveral == wanted.ofSeveral && sum.ofOne == wanted.ofOne)
      return &sum;
  return nullptr;
}

SequenceSum stage::ofPrompts(const Graph &graph, const SequenceSum &pairs, const Dim &rows, int64_t tile) {
  if (!tile)
    return {"", pairs.ofSeveral, graph.sizes.zero(), pairs.loc};
  Size inTiles = (pairs.ofSeveral * (rows.size.ceilDiv(graph.sizes.constant(tile)) * tile)).ceilDiv(rows.size);
  return {"", inTiles, pairs.ofOne * tile, pairs.loc};
}

static bool isPacked(const Op &op, unsigned index) { return op.extents[index].dim && op.extents[index].dim->isPacked; }

bool stage::isStateOfEach(const Value &value) {
  const Graph &graph = value.getBlock()->getGraph();
  if (graph.training || !graph.findDim(presentSymbol))
    return false;
  const Value *cache = value.getOp() && value.getOp()->kind == OpKind::Cache ? &value : getCacheWrittenInPlace(value);
  return cache && llvm::none_of(cache->getUses(), [](auto use) { return use.first->kind == OpKind::Append; });
}

bool stage::takesEachApart(const Op &op) {
  auto countPacked = [&](llvm::ArrayRef<unsigned> indices) {
    return llvm::count_if(indices, [&](unsigned index) { return isPacked(op, index); });
  };
  for (const OperandInfo &operand : op.def->operands)
    if (countPacked(operand.indices) > 1)
      return false;
  for (auto &result : op.getResults())
    if (countPacked(op.def->results[result->getNumber()].indices) != (isStateOfEach(*result) ? 0 : 1))
      return false;
  SizeContext &sizes = op.getBlock()->getGraph().sizes;
  llvm::SmallVector<Size, 8> once, twice;
  for (unsigned index = 0; index < op.extents.size(); ++index) {
    once.push_back(op.extents[index].size);
    twice.push_back(once.back() * (isPacked(op, index) ? 2 : 1));
  }
  return !op.def->bytes &&
         getFlops(sizes, *op.def, twice, Size()).getTotal() == getFlops(sizes, *op.def, once, Size()).getTotal() * 2;
}

bool stage::cutsSequences(const Op &op) {
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    for (auto [extent, index] : llvm::zip(op.getOperand(i)->type.shape, op.def->operands[i].indices))
      if (extent.dim && extent.dim->isPacked && op.def->indices[index].isCompound())
        return true;
  return false;
}

bool stage::mixesSequences(const Op &op) {
  if (op.kind != OpKind::Compute || op.def->getRouting() || op.def->mask)
    return false;
  // What takes some positions out of all belongs to no sequence in particular.
  if (llvm::any_of(op.extents, [](const Extent &extent) { return extent.dim && extent.dim->isOptional; }))
    return false;
  // What makes something of states alone is of no sequence in particular, either.
  bool readsState = llvm::any_of(op.getOperands(), [](const Value *operand) { return isStateOfEach(*operand); });
  bool hasPositions = llvm::any_of(op.extents, [](const Extent &extent) { return extent.dim && extent.dim->isPacked; });
  if (cutsSequences(op) || (readsState && !hasPositions))
    return true;
  const Dim *first = nullptr;
  for (unsigned index = 0; index < op.extents.size(); ++index) {
    if (!isPacked(op, index))
      continue;
    const IndexInfo &info = op.def->indices[index];
    bool pairs = first && first != op.extents[index].dim;
    if (pairs || info.whole || info.fold || op.def->reduced[index])
      return !takesEachApart(op);
    first = op.extents[index].dim;
  }
  return false;
}

bool stage::splitsSequences(const Op &op) {
  if (op.kind != OpKind::Compute || !op.def->mask)
    return false;
  const Mask &mask = *op.def->mask;
  auto isSplit = [&](unsigned index) {
    return isPacked(op, index) && index < op.indexAxes.size() && !op.indexAxes[index].empty();
  };
  return isSplit(mask.rows) || isSplit(mask.columns);
}
