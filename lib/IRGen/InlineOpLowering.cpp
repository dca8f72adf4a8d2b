//===- InlineOpLowering.cpp - ops written where they are used -------------===//
//
//   op(x: [b, s, d], w: [d, f]) -> [b, s, f]        sum[d](x * w): what the result lacks is summed
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"

using namespace stage;

Op *OpLowering::contraction(const ast::OpExpr &expr, llvm::ArrayRef<TensorArgument> arguments,
                            const sema::Environment &callerEnv, Block &block, llvm::StringRef scope) {
  env = &callerEnv;
  def.name = "contract";
  def.loc = expr.loc();
  sema::Environment own(callerEnv.getFile());
  env = &own; // index names of an anonymous op are its own
  for (unsigned i = 0; i < expr.operands.size(); ++i) {
    auto *named = llvm::dyn_cast<ast::NameExpr>(expr.operands[i].value);
    std::string name = named ? named->name.str() : "x" + std::to_string(i);
    if (operandByName.count(name))
      name += std::to_string(i);
    if (!checkMixing(name, arguments[i].value, arguments[i].range) ||
        !bindOperand(name, expr.operands[i].type->dims, arguments[i], def.name))
      return nullptr;
  }
  if (!bindCompounds(openCompounds))
    return nullptr;
  if (expr.results.size() != 1) {
    diags.report(expr.loc(), diag::NotSupportedYet).range(expr.range)
        << "an op in an expression with several results; declare the op, as in 'op f(x: [b]) -> (y: [b], z: [b]) = "
           "...;'";
    return nullptr;
  }
  if (!addResult("result", *expr.results.front(), false))
    return nullptr;
  if (expr.formula) {
    env = &callerEnv; // what is no operand and no index is a value of the module
    def.name = "formula";
    def.results.front().formula = lower(expr.formula);
    return def.results.front().formula ? finish(expr.range, block, scope) : nullptr;
  }
  const Formula *product = nullptr;
  for (unsigned i = 0; i < def.operands.size(); ++i) {
    const Formula *element = graph.defs.element(i, def.operands[i].indices);
    product = product ? graph.defs.binary(Formula::Kind::Mul, product, element) : element;
  }
  llvm::SmallVector<unsigned, 4> kept = def.expand(def.results.front().indices), summed;
  for (unsigned index = 0; index < def.indices.size(); ++index)
    if (!def.indices[index].isCompound() && !llvm::is_contained(kept, index))
      summed.push_back(index);
  def.results.front().formula = graph.defs.sum(summed, product);
  return finish(expr.range, block, scope);
}
