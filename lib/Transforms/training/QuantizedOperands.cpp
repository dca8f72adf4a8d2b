//===- QuantizedOperands.cpp - operands that are read in small types ------===//
#include "training/QuantizedOperands.h"
#include "stage/IR/algebra/AttentionIndices.h"

using namespace stage;

bool stage::isQuantizableProduct(const Op &op) {
  if (op.kind != OpKind::Compute)
    return false;
  const OpDef &def = *op.def;
  return def.isProduct && def.operands.size() > 1 && llvm::is_contained(def.reduced, true) && !def.getRouting() &&
         def.declaredClass.value_or(FlopClass::Contraction) != FlopClass::Other;
}

static const OpDef &getForward(const OpDef &def) { return def.vjpOf ? *def.vjpOf : def; }

bool stage::isQuantizableAttention(const Op &op) {
  if (op.kind != OpKind::Compute || op.def->isProduct)
    return false;
  const OpDef &forward = getForward(*op.def);
  return forward.declaredClass == FlopClass::Attention && !forward.isProduct && findAttentionIndices(forward);
}

/// The operand of a backward that is the gradient of the first result, which products with values make.
static std::optional<unsigned> findGradient(const OpDef &def) {
  const unsigned *gradient = llvm::find(def.vjpGradients, 0u);
  if (gradient == def.vjpGradients.end())
    return std::nullopt;
  return def.operands.size() - def.vjpGradients.size() + (gradient - def.vjpGradients.begin());
}

static llvm::SmallVector<unsigned, 4> listOfAttention(const OpDef &def) {
  const OpDef &forward = getForward(def);
  llvm::SmallVector<unsigned, 4> multiplied = listMultiplied(forward, *findAttentionIndices(forward));
  if (!def.vjpOf)
    return multiplied;
  llvm::SmallVector<unsigned, 4> savedOperands, operands;
  llvm::SmallVector<unsigned, 2> savedResults;
  listSaved(forward, savedOperands, savedResults);
  for (unsigned i = 0; i < savedOperands.size(); ++i)
    if (llvm::is_contained(multiplied, savedOperands[i]))
      operands.push_back(i);
  if (std::optional<unsigned> gradient = findGradient(def))
    operands.push_back(*gradient);
  return operands;
}

llvm::SmallVector<unsigned, 4> stage::listQuantizedOperands(const Op &op) {
  if (isQuantizableAttention(op))
    return listOfAttention(*op.def);
  llvm::SmallVector<unsigned, 4> operands;
  for (unsigned i = 0; isQuantizableProduct(op) && i < op.getNumOperands(); ++i)
    operands.push_back(i);
  return operands;
}

/// Whether the products of an attention that read an operand add up `index`. Scores add up inner indices. So does
/// backward, of gradients and values; forward adds up the positions of values.
static bool isAddedUp(const OpDef &def, const AttentionIndices &indices, unsigned operand, unsigned index) {
  llvm::SmallVector<unsigned, 4> all = def.expand(def.operands[operand].indices), members = def.expand(index);
  bool isOfScores =
      llvm::any_of(all, [&](unsigned member) { return indices.isInner(member) && indices.addedUp.count(member); });
  if (!def.vjpOf && !isOfScores && indices.columns && llvm::is_contained(all, *indices.columns))
    return llvm::is_contained(members, *indices.columns);
  return llvm::any_of(members, [&](unsigned member) { return indices.isInner(member); });
}

QuantizedBlocks stage::getBlocks(const Rule &rule, const Op &op, unsigned operand, bool isTurned) {
  if (rule.blocks.empty())
    return {};
  enum Kind { Kept, Added, Batch };
  llvm::SmallVector<Kind, 4> kinds;
  const OpDef &def = *op.def;
  std::optional<AttentionIndices> attention;
  if (isQuantizableAttention(op))
    attention = findAttentionIndices(getForward(def));
  llvm::SmallVector<unsigned, 4> multiplied = listQuantizedOperands(op);
  for (unsigned index : def.operands[operand].indices) {
    bool isAdded = attention ? isAddedUp(def, *attention, operand, index) : def.reduced[index] != isTurned;
    bool isCommon = llvm::all_of(
        multiplied, [&](unsigned other) { return llvm::is_contained(def.operands[other].indices, index); });
    bool isBatch = isCommon && (attention ? !isAdded : !def.reduced[index]);
    kinds.push_back(isBatch ? Batch : isAdded ? Added : Kept);
  }
  QuantizedBlocks blocks(kinds.size(), 1);
  std::array<bool, 2> isCut = {false, false};
  for (unsigned end = kinds.size(); end > 0;) {
    unsigned begin = end - 1;
    while (begin > 0 && kinds[begin - 1] == kinds[begin])
      --begin;
    if (Kind kind = kinds[begin]; kind != Batch && rule.blocks[kind] > 1 && !std::exchange(isCut[kind], true)) {
      std::fill(blocks.begin() + begin, blocks.begin() + end, 0);
      blocks[end - 1] = rule.blocks[kind];
    }
    end = begin;
  }
  return blocks;
}

QuantizedBlocks stage::getLastBlocks(const Rule &rule, const TensorType &type) {
  QuantizedBlocks blocks;
  if (!rule.blocks.empty())
    blocks.assign(type.getNumDims(), 1);
  for (unsigned d = blocks.size(), kind = 2; d > 0 && kind > 0;)
    blocks[--d] = rule.blocks[--kind];
  return blocks;
}

Value *stage::findCache(Value &operand) {
  Value *value = &operand;
  while (Op *maker = value->getOp()) {
    if (maker->kind == OpKind::Cache)
      return value;
    if (maker->kind != OpKind::Append && !isMove(maker->kind))
      return nullptr;
    value = isMove(maker->kind) ? getMoved(*value) : maker->getOperand(0);
  }
  return nullptr;
}
