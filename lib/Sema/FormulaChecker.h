//===- FormulaChecker.h - the indices of element formulas ------*- C++ -*-===//
//
// A formula says what one element of a result is, in index notation:
//
//   let q[b, s, k] = sum[d](x[b, s, d] * wq[d, k]);
//   op softmax(x: [..., d]) -> [..., d] = exp(x - max[d](x)) / sum[d](exp(x - max[d](x)));
//
// Names. In a formula in place an index is a name in the result's brackets or in the
// brackets of a reduction around; an op declares its indices by its operands and
// results. Inside its formula an index hides every other name.
//
// Rule. Walking the formula from below gives, for each part, the indices at which
// operands are accessed and that no reduction has taken away yet. At the top those
// must be indices of the result: nothing is reduced silently. A reduction must find
// its indices in its body. Bare indices (`t <= s`, `rsqrt(e)`) access nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_FORMULACHECKER_H
#define STAGE_LIB_SEMA_FORMULACHECKER_H

#include "stage/AST/AST.h"
#include "llvm/ADT/MapVector.h"

namespace stage::sema {

/// Index names and where each was first seen. The anonymous pack is "...".
using IndexSet = llvm::MapVector<llvm::StringRef, SMRange>;

/// What surrounds a formula.
class FormulaScope {
public:
  virtual ~FormulaScope() = default;
  /// False if a name that is no index means nothing. An operand of an op adds the indices it is declared with.
  virtual bool resolve(llvm::StringRef name, SMRange range, IndexSet &accessed) = 0;
  /// Checks an expression that is no formula: what a formula in place subscripts.
  virtual void checkOutside(const ast::Expr *expr) = 0;
  /// Whether a function that is not built in may be called: an op, or a parameter that stands for one.
  virtual bool isCallable(llvm::StringRef name) = 0;
  /// The shape with which a tensor is declared; null: none is written, as for what a 'let' names.
  virtual const ast::TensorType *findShape(llvm::StringRef) { return nullptr; }
  virtual void reportUnknownName(llvm::StringRef name, SMRange range, diag::Message<diag::Text> id) = 0;
};

/// Checks a formula in place with the result `[indices]`.
void checkFormula(FormulaScope &scope, DiagnosticEngine &diags, llvm::ArrayRef<ast::Expr *> indices,
                  const ast::Expr *formula);
/// Checks (a part of) an op's formula; gives the indices that are accessed and not reduced in it.
IndexSet checkOpFormula(FormulaScope &scope, DiagnosticEngine &diags, const IndexSet &declared,
                        const ast::Expr *formula);

/// The indices of an operand's or result's shape.
void collectIndices(const ast::TensorType &type, IndexSet &indices);
/// Reports indices that are neither in the result nor reduced.
void checkReduced(DiagnosticEngine &diags, const IndexSet &accessed, const IndexSet &result);
/// Reports indices of a result that stand in no operand, so that they have no size.
void checkResultIndices(DiagnosticEngine &diags, const ast::TensorType &result, const IndexSet &operands);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_FORMULACHECKER_H
