//===- CostChecks.cpp - declared costs beside those of the formula --------===//
//
// Problem: `flops = 1;` of a product, or `backward flops = 0;` left over from a draft, and everything that is made of
// FLOPs is wrong without a word.
//
//   op linear(x: [b, m], w: [m, n]) -> [b, n] = sum[m](x * w) { flops = 1; }       the formula has 2 * b * m * n
//
// Algorithm: at each call the declared FLOPs are compared with those that the formula has (CountFlops.cpp), with the
// sizes of the job: of the op, and of the gradients of all its operands that have one. Under a mask the formula's work
// on pairs counts as far as the pairs do, as `area` says. A difference of more than 1 % is a warning, unless the clause
// says why: `flops = 5 * volume because "a sigmoid is an exponential, an addition and a division";`.
//
// Limits: ops without a formula, and sizes that each unit binds for itself, are not looked at; nor is what follows from
// other declared costs (a backward of declared FLOPs costs twice these).
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IRGen/Diagnostics.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace stage;

/// FLOPs that the formulas of an op, or of a backward, have.
static Size countFormula(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  const std::optional<Mask> &mask = def.vjpOf ? def.vjpOf->mask : def.mask;
  Size total = ctx.zero();
  for (const FlopTerm &term : def.flopTerms) {
    Size flops = getFlops(ctx, term, sizes);
    if (mask && area && llvm::is_contained(term.indices, mask->rows) && llvm::is_contained(term.indices, mask->columns))
      flops = flops / (sizes[mask->rows] * sizes[mask->columns]) * area;
    total = total + flops;
  }
  return total;
}

static double asDouble(const SizeValue &size) { return double(size.value.num) / double(size.value.den); }

static std::string describeFlops(double flops) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(flops < 1e15 ? "%.0f" : "%.3g", flops);
  return text;
}

/// One clause against what the formula of `def` has.
void OpLowering::warnCost(const ast::OpClauseStmt &clause, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area) {
  Size said = getFlops(graph.sizes, def, sizes, area).getTotal(), counted = countFormula(graph.sizes, def, sizes, area);
  if (said == counted) // whatever the sizes: a model that is the same for all need not ask for them (ModelCache)
    return;
  SizeValue ofClause = evaluate(said, graph.binding), ofFormula = evaluate(counted, graph.binding);
  if (!ofClause || !ofFormula)
    return;
  double declared = asDouble(ofClause), formula = asDouble(ofFormula);
  if (std::fabs(declared - formula) <= 0.01 * formula)
    return;
  const OpDef &op = def.vjpOf ? *def.vjpOf : def;
  llvm::StringRef word = def.vjpOf ? "backward flops" : "flops";
  DiagnosticBuilder message = diags.report(clause.loc(), diag::CostsDiffer).range(clause.range)
                              << declName << word << (def.vjpOf ? "its gradient" : "its formula");
  message.note(calledAt.Start, diag::CostsHere) << op.name << describeFlops(declared) << describeFlops(formula);
}

void OpLowering::warnCosts(Op &op) {
  if (op.def->opaque || (!flopsClause && !backwardClause))
    return;
  llvm::SmallVector<Size, 8> sizes;
  for (const Extent &extent : op.extents)
    sizes.push_back(extent.size);
  op.indexAxes.resize(op.extents.size()); // whole: no axis splits anything
  Size area = getLocalMaskArea(graph, op);
  op.indexAxes.clear();
  if (flopsClause)
    warnCost(*flopsClause, *op.def, sizes, area);
  llvm::SmallVector<unsigned, 4> given, wanted;
  for (unsigned i = 0; i < op.def->getNumVisibleResults(); ++i)
    given.push_back(i);
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    if (!op.def->dataDependent[i] && isFloat(op.getOperand(i)->type.dtype))
      wanted.push_back(i);
  if (!backwardClause || wanted.empty() || op.def->stopGradient)
    return;
  OpDef backward = makeBackward(*op.def, given, wanted);
  analyze(backward);
  warnCost(*backwardClause, backward, sizes, area);
}
