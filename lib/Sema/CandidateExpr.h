//===- CandidateExpr.h - expressions over the values of a candidate -*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_CANDIDATEEXPR_H
#define STAGE_LIB_SEMA_CANDIDATEEXPR_H

#include "JobParts.h"
#include "stage/Sema/Evaluator.h"
#include "stage/Sema/Search.h"

namespace stage::sema {

/// Makes a CandidateExpr of an expression of the program. Names are, in this order: what is searched, what follows,
/// other parameters of the strategy (their argument or default is put in their place), records, sizes of the model and
/// the step, repeats, and what the evaluator knows.
class CandidateCompiler {
public:
  using CountIterations = llvm::function_ref<std::optional<int64_t>(StringRef)>;
  CandidateCompiler(Evaluator &evaluator, const JobParts &parts, const BoundJob &model, BoundSearch &search,
                    CountIterations countIterations)
      : evaluator(evaluator), parts(parts), model(model), search(search), countIterations(countIterations) {}

  /// Nothing after a report.
  std::optional<CandidateExpr> compile(const ast::Expr *expr, const ast::File &file);
  /// The product of the sizes of these axes.
  std::optional<CandidateExpr> compileProduct(ArrayRef<ast::MeshStmt::AxisSyntax> axes);
  /// The value of a name over that product.
  std::optional<CandidateExpr> compileQuotient(StringRef name, ArrayRef<ast::MeshStmt::AxisSyntax> axes);
  /// A value that the evaluator found. Nothing if it is neither a number nor a word.
  std::optional<CandidateValue> makeValue(const CTValue &value, StringRef text);
  /// `value`, as `-D` reads it.
  CandidateValue makeValue(const OverrideValue &value);
  unsigned findWord(StringRef text);

private:
  using Node = CandidateExpr::Node;
  using Op = CandidateExpr::Op;
  std::optional<unsigned> visit(const ast::Expr *expr, const ast::File &file);
  std::optional<unsigned> visitName(const ast::NameExpr *expr, const ast::File &file);
  std::optional<unsigned> visitCall(const ast::CallExpr *expr, const ast::File &file);
  /// `machine.levels[0].ranks`, `machine.memory.capacity`
  std::optional<unsigned> visitMachine(const ast::Expr *expr);
  std::optional<unsigned> visitConstant(const ast::Expr *expr, const ast::File &file);
  std::optional<unsigned> visitProduct(ArrayRef<ast::MeshStmt::AxisSyntax> axes);
  std::optional<unsigned> refuse(const ast::Expr *expr);
  unsigned addBinary(ast::BinaryOp op, unsigned left, unsigned right);
  CandidateExpr take();
  unsigned add(Node node);
  unsigned addConstant(Rational value);
  unsigned addSlot(unsigned slot);

  Evaluator &evaluator;
  const JobParts &parts;
  const BoundJob &model;
  BoundSearch &search;
  CountIterations countIterations;
  std::vector<Node> nodes;
  llvm::SmallVector<StringRef, 8> open; ///< Parameters whose expressions are being compiled.
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_CANDIDATEEXPR_H
