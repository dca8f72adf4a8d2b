//===- Identity.cpp - ops whose result is their operand -------------------===//
#include "stage/IR/graph/Identity.h"
#include "llvm/ADT/SmallSet.h"

using namespace stage;

/// The formula of the only visible result, if that is an element of an operand.
static const Formula *findElement(const OpDef &def) {
  if (def.vjpOf || def.opaque || def.getNumVisibleResults() != 1)
    return nullptr;
  const Formula *formula = def.results.front().formula;
  while (formula && formula->kind == Formula::Kind::Let) // of those before it
    formula = def.lets[formula->operand].second;
  return formula && formula->kind == Formula::Kind::Element ? formula : nullptr;
}

std::optional<unsigned> stage::findInSlots(const OpDef &def) {
  const Formula *formula = def.routing ? findElement(def) : nullptr;
  return formula && formula->operand != def.routing->operand ? std::optional(formula->operand) : std::nullopt;
}

std::optional<unsigned> stage::findIdentity(const OpDef &def) {
  const Formula *formula = def.routing ? nullptr : findElement(def);
  if (!formula)
    return std::nullopt;
  const ResultInfo &result = def.results.front();
  llvm::ArrayRef<unsigned> declared = def.operands[formula->operand].indices;
  if (declared != llvm::ArrayRef<unsigned>(result.indices))
    return std::nullopt;
  llvm::SmallSet<unsigned, 4> seen; // the diagonal of a matrix is not the matrix
  for (size_t i = 0; i < declared.size(); ++i) {
    const Formula *subscript = formula->children[i];
    if (subscript->kind != Formula::Kind::Index || subscript->index != declared[i] || !seen.insert(declared[i]).second)
      return std::nullopt;
  }
  return formula->operand;
}

/// The result has the operand's element type, and is kept as that is.
static bool isKeptAlike(const Op &op) {
  const TensorType &before = op.getOperand(0)->type, &after = op.getResult()->type;
  return before.dtype == after.dtype && before.isKeptAs(after);
}

bool stage::computesNothing(const Op &op) {
  if (op.kind != OpKind::Compute || op.getNumOperands() != 1 || op.getNumResults() != 1)
    return false;
  const OpDef &def = *op.def;
  return !def.flops && !def.bytes && !def.backwardFlops && !def.declaresSaves && isKeptAlike(op) && findIdentity(def);
}

bool stage::isCast(const Op &op) {
  return op.kind == OpKind::Compute && op.getNumOperands() == 1 && op.getNumResults() == 1 && !isKeptAlike(op) &&
         findIdentity(*op.def);
}

const Value *stage::getBufferWrittenBack(const Op &op) {
  if (!isCast(op))
    return nullptr;
  auto findMoved = [](const Value *value) {
    while (value->getOp() && isReshard(value->getOp()->kind))
      value = getMoved(*value);
    return value;
  };
  const Op *narrow = findMoved(op.getOperand(0))->getOp();
  const Value *buffer = narrow && isCast(*narrow) ? findMoved(narrow->getOperand(0)) : nullptr;
  bool isBuffer = buffer && buffer->getOp() && buffer->getOp()->kind == OpKind::Accumulate;
  return isBuffer && buffer->type.dtype == op.getResult()->type.dtype ? buffer : nullptr;
}
