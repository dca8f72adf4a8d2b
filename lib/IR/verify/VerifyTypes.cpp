//===- VerifyTypes.cpp - what operators take and make ---------------------===//
//
// V4, V5: each index of an operator has one extent in all operands and results, and results have the element types that
// follow. V15: what is made again is what forward made.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/graph/Identity.h"

using namespace stage;

/// A compound index has as many positions as its members together, once all sizes are known.
static void verifyCompound(VerifierContext &context, const Op &op, unsigned index) {
  const IndexInfo &info = op.def->indices[index];
  if (!info.isCompound())
    return;
  Size product = context.graph.sizes.one();
  for (unsigned member : info.members)
    product = product * op.extents[member].size;
  SizeValue expected = evaluate(product, context.graph.binding);
  SizeValue found = evaluate(op.extents[index].size, context.graph.binding);
  if (expected && found && !(expected.value == found.value))
    context.diags.report(op.loc, diag::IRWrongExtent)
        << "index '" + info.name + "' of '" + op.def->name + "'" << context.text(op.extents[index])
        << "the product of its parts" << context.text(Extent{nullptr, product});
}

static void verifyExtents(VerifierContext &context, const Op &op, const llvm::Twine &what,
                          llvm::ArrayRef<unsigned> indices, const TensorType &type) {
  std::string owner = what.str();
  if (!context.checkCount(op, "dims of " + owner, indices.size(), type.getNumDims()))
    return;
  for (unsigned i = 0; i < indices.size(); ++i) {
    const Extent &extent = op.extents[indices[i]];
    if (extent.size != type.shape[i].size)
      context.diags.report(op.loc, diag::IRWrongExtent)
          << "index '" + op.def->indices[indices[i]].name + "' of '" + op.def->name + "'" << context.text(extent)
          << "dim " + std::to_string(i) + " of " + owner << context.text(type.shape[i]);
  }
}

static void verifyResultDType(VerifierContext &context, const Op &op, unsigned i) {
  std::optional<DType> expected = op.def->results[i].dtype;
  for (unsigned k = 0; !expected && k < op.getNumOperands(); ++k)
    if (isFloat(op.getOperand(k)->type.dtype))
      expected = op.getOperand(k)->type.dtype;
  if (!expected || *expected == op.getResult(i)->type.dtype)
    return;
  TensorType type = op.getResult(i)->type;
  type.dtype = *expected;
  context.checkType(op.loc, "result '" + op.def->results[i].name + "' of " + op.def->name, type, op.getResult(i)->type);
}

void stage::verifyQuantization(VerifierContext &context, const Value &value) {
  const Quantization *quantization = value.type.quantization.get();
  if (!quantization)
    return;
  auto fail = [&](const std::string &fault) {
    context.diags.report(value.loc, diag::IRBadQuantization) << context.name(&value) << fault;
  };
  if (getBitSize(quantization->type) >= getBitSize(value.type.dtype))
    fail(getName(quantization->type).str() + " is not smaller than " + getName(value.type.dtype).str());
  if (!isFloat(value.type.dtype) || !isFloat(quantization->scales))
    fail("what is quantized, and scales, are floating-point numbers");
  size_t numBlocks = quantization->blocks.size();
  if (numBlocks && numBlocks != value.type.getNumDims())
    fail("it has " + std::to_string(value.type.getNumDims()) + " dims, but its blocks have " +
         std::to_string(numBlocks));
  if (numBlocks && !quantization->blocks.back())
    fail("there is no next dim over which blocks go on");
  const Op *maker = value.getOp();
  if (!maker || maker->kind != OpKind::Compute)
    return;
  std::optional<unsigned> inSlots = findInSlots(*maker->def);
  const Quantization *before =
      inSlots && *inSlots < maker->getNumOperands() ? maker->getOperand(*inSlots)->type.quantization.get() : nullptr;
  bool isHandedOn = before && before->type == quantization->type && before->scales == quantization->scales;
  if (!isHandedOn && findIdentity(*maker->def) != 0u)
    fail("it is made by '" + maker->def->name +
         "', but only an op whose result is its operand quantizes that, and only one that routes a quantized operand "
         "hands that on");
}

bool stage::verifyCompute(VerifierContext &context, const Op &op) {
  const OpDef &def = *op.def;
  if (!(context.checkCount(op, "operands", def.operands.size(), op.getNumOperands()) &
        context.checkCount(op, "results", def.results.size(), op.getNumResults())) ||
      !context.checkCount(op, "extents", def.indices.size(), op.extents.size()))
    return false;
  for (unsigned i = 0; i < op.extents.size(); ++i)
    verifyCompound(context, op, i);
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    verifyExtents(context, op, "operand '" + def.operands[i].name + "'", def.operands[i].indices,
                  op.getOperand(i)->type);
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    verifyExtents(context, op, "result '" + def.results[i].name + "'", def.results[i].indices, op.getResult(i)->type);
    verifyResultDType(context, op, i);
  }
  return true;
}

bool stage::verifyAgain(VerifierContext &context, const Op &op, PhaseKind phase) {
  auto fail = [&](const std::string &fault) {
    context.diags.report(op.loc, diag::IRNotAgain) << VerifierContext::getName(op) << fault;
    return false;
  };
  if (!op.isRecomputed)
    return phase != PhaseKind::Recompute || fail("stands in recompute, but is not said to make anything 'again'");
  if (phase != PhaseKind::Recompute && !isBackward(phase))
    return fail("is said to make something 'again', but stands in " + stage::getName(phase).str());
  if (!op.origin)
    return true;
  std::string name = context.name(op.origin->getResult());
  if (&op.origin->getBlock()->getTop() != &context.graph.getForward())
    return fail("is said to make " + name + " 'again', which forward does not make");
  bool isSame = op.getNumResults() == op.origin->getNumResults();
  for (unsigned i = 0; isSame && i < op.getNumResults(); ++i) {
    const TensorType &made = op.getResult(i)->type, &before = op.origin->getResult(i)->type;
    isSame = made.dtype == before.dtype && VerifierContext::hasSameShape(made, before);
  }
  return isSame || fail("is said to make " + name + " 'again', but has other results");
}
