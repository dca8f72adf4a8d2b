//===- AttentionIndices.cpp - what the indices of an attention are --------===//
#include "stage/IR/algebra/AttentionIndices.h"

using namespace stage;

using IndexSet = AttentionIndices::Set;

static IndexSet makeSet(const OpDef &def, llvm::ArrayRef<unsigned> indices) {
  IndexSet set;
  for (unsigned index : def.expand(indices))
    set.insert(index);
  return set;
}

static void collectAddedUp(const Formula *formula, IndexSet &indices) {
  if (!formula)
    return;
  for (unsigned index : formula->indices) // of a reduction
    indices.insert(index);
  for (const Formula *child : formula->children)
    collectAddedUp(child, indices);
}

bool stage::standsWith(const OpDef &forward, unsigned index, std::optional<unsigned> columns, bool wanted) {
  return llvm::any_of(forward.operands, [&](const OperandInfo &operand) {
    llvm::SmallVector<unsigned, 4> indices = forward.expand(operand.indices);
    return llvm::is_contained(indices, index) && (columns && llvm::is_contained(indices, *columns)) == wanted;
  });
}

std::optional<AttentionIndices> stage::findAttentionIndices(const OpDef &forward) {
  AttentionIndices found;
  std::optional<IndexSet> scores;
  for (const FlopTerm &term : countFlops(forward)) {
    if (term.flopClass == FlopClass::Other)
      continue;
    IndexSet range = makeSet(forward, term.indices), common;
    for (unsigned index : range) {
      found.inner.insert(index);
      if (!scores || scores->count(index))
        common.insert(index);
    }
    scores = common;
  }
  if (!scores)
    return std::nullopt;
  // Keys and values may share the name of a dim: what the scores add up is none of theirs.
  IndexSet ofResult = makeSet(forward, forward.results.front().indices);
  for (const auto &[name, formula] : forward.lets)
    collectAddedUp(formula, found.addedUp);
  for (const ResultInfo &result : forward.results)
    collectAddedUp(result.formula, found.addedUp);
  for (unsigned index : found.addedUp)
    if (ofResult.count(index))
      scores->erase(index);
  found.scores = *scores;
  if (forward.mask)
    found.rows = forward.mask->rows, found.columns = forward.mask->columns;
  for (unsigned index = 0; index < forward.indices.size() && !found.columns; ++index)
    if (forward.indices[index].fold)
      found.columns = index;
  for (unsigned index = 0; index < forward.indices.size() && !found.rows; ++index)
    if (found.scores.count(index) && index != found.columns && !standsWith(forward, index, found.columns, true))
      found.rows = index;
  return found;
}

llvm::SmallVector<unsigned, 4> stage::listMultiplied(const OpDef &forward, const AttentionIndices &indices) {
  llvm::SmallVector<unsigned, 4> operands;
  for (unsigned operand = 0; operand < forward.operands.size(); ++operand)
    if (llvm::any_of(forward.expand(forward.operands[operand].indices),
                     [&](unsigned index) { return indices.isInner(index); }))
      operands.push_back(operand);
  return operands;
}
