//===- OpLowering.h - an op of the program becomes an OpDef ----*- C++ -*-===//
//
// A declared op is generic: `...` stands for any indices, sizes come from the
// operands, compile-time parameters choose among formulas. At a call all of that is
// known. OpLowering expands it:
//
//   op linear(x: [..., m], w: [m, n]) -> [..., n] = sum[m](x * w);     called with x: [B, S, D], w: [D, F]
//   op linear(x: [b, s, m], w: [m, n]) -> (result: [b, s, n] = sum[m](x[b, s, m] * w[m, n]));
//   extents b = B, s = S, m = D, n = F
//
// In a formula a bare index is its position (`t <= s`, `cos(s * theta)`), `size(e)` is
// how many there are; in a cost (`flops = ...`) a bare index is its size.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IRGEN_OPLOWERING_H
#define STAGE_LIB_IRGEN_OPLOWERING_H

#include "ComputeTypes.h"
#include "stage/IR/algebra/FormulaPoint.h"
#include "stage/IR/graph/Graph.h"
#include "stage/Sema/Evaluator.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace stage {

/// A tensor argument: the value and where it is written.
struct TensorArgument {
  Value *value;
  SMRange range;
};

/// `1 dim`, `at least 2 dims`.
std::string describeDimCount(size_t count, bool orMore = false);

/// A weight or an input that nothing uses yet, so that its declaration may change.
bool mayRedeclare(const Value &value);

class OpLowering {
public:
  OpLowering(Graph &graph, sema::Evaluator &evaluator, const ComputeTypes &types)
      : graph(graph), evaluator(evaluator), diags(evaluator.getDiags()), types(types) {}

  /// A call of a declared op: its results, the saved extras behind them, or the argument that it hands on where a draw
  /// that is certain has left nothing to do. `env` has the op's compile-time parameters. Empty after an error.
  llvm::SmallVector<Value *, 2> call(const ast::OpDecl &decl, llvm::ArrayRef<TensorArgument> arguments,
                                     sema::Environment &env, SMRange range, Block &block, llvm::StringRef scope);

  /// A formula in place: `q[b, s, f] = sum[d](x[b, s, d] * w[d, f])`. `tensor` finds the value of a name.
  Op *formulaInPlace(llvm::ArrayRef<ast::Expr *> resultIndices, const ast::Expr *formula, const sema::Environment &env,
                     SMRange range, Block &block, llvm::StringRef scope);

  /// `op(x: [b, s, d], w: [d, f]) -> [b, s, f]`: the contraction that the indices say, or, with `= (formula)` behind
  /// it, that formula over the operands that are names.
  Op *contraction(const ast::OpExpr &expr, llvm::ArrayRef<TensorArgument> arguments, const sema::Environment &env,
                  Block &block, llvm::StringRef scope);

private:
  void noteCall(DiagnosticBuilder &&message) const;
  bool checkMixing(llvm::StringRef name, Value *value, SMRange range);

  // Shapes (OpLowering.cpp).
  bool bindOperand(llvm::StringRef name, llvm::ArrayRef<ast::ShapeDim> dims, const TensorArgument &argument,
                   llvm::StringRef opName);
  std::optional<llvm::SmallVector<unsigned, 4>> resolveIndices(llvm::ArrayRef<ast::ShapeDim> dims);
  std::optional<unsigned> bindIndex(const ast::Expr *expr, const Extent &extent, const TensorArgument &argument,
                                    unsigned position);
  // Sizes that contradict each other (ShapeMistakes.cpp).
  void reportTwoSizes(llvm::StringRef name, unsigned index, const Extent &extent, const TensorArgument &argument,
                      unsigned position);
  std::string suggestSubscripts(const Value &value) const;
  llvm::StringRef findOpOfOtherOrder(unsigned operand) const;
  unsigned addIndex(llvm::StringRef name, const Extent &extent, SMLoc loc);
  unsigned addUnnamedIndex(const Extent &extent, SMLoc loc);
  bool addResult(llvm::StringRef name, const ast::TensorType &type, bool extra);

  // Several indices as one dim (CompoundLowering.cpp).
  struct OpenCompound {
    const ast::CompoundExpr *expr;
    Extent extent;
    SMRange range;                                      ///< Of the tensor that has the dim.
    std::optional<std::pair<unsigned, unsigned>> place; ///< Operand and dim, of a declared op.
  };
  bool bindCompounds(llvm::MutableArrayRef<OpenCompound> open);
  bool bindCompound(const OpenCompound &open, bool &isDone);
  std::optional<unsigned> findCompound(const ast::CompoundExpr &expr, const Extent *extent, SMRange range);
  std::optional<Extent> evaluateExtent(const ast::Expr *size);
  bool bindSized(const ast::Expr *index);
  bool oweWithin(unsigned compound, const Extent &extent, SMRange range);
  bool refuseClauses(const ast::OpDecl &decl);
  ResultInfo *findResult(llvm::StringRef name);
  bool lowerBody(const ast::OpDecl &decl);
  bool lowerClause(const ast::OpClauseStmt &clause);
  bool forEachNamed(llvm::ArrayRef<ast::Ident> names, llvm::function_ref<void(unsigned)> f);
  Op *finish(SMRange range, Block &block, llvm::StringRef scope);
  bool complete();
  Op *append(OpDef made, llvm::ArrayRef<Value *> madeOf, llvm::ArrayRef<Extent> sizes, SMRange range, Block &block,
             llvm::StringRef scope);

  // Declared costs (CostChecks.cpp).
  void warnCosts(Op &op);
  void warnCost(const ast::OpClauseStmt &clause, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area);

  // Several products as one op (SplitProducts.cpp).
  std::vector<ProductTerm> findParts();
  Op *appendPart(const ProductTerm &term, SMRange range, Block &block, llvm::StringRef scope);

  // Formulas (FormulaLowering.cpp).
  const Formula *lower(const ast::Expr *expr);
  const Formula *lowerName(const ast::NameExpr &expr);
  const Formula *lowerCall(const ast::CallExpr &expr);
  const Formula *lowerElement(const ast::IndexExpr &expr);
  const Formula *lowerConstant(const ast::Expr *expr);
  const Formula *shareFormula(const Formula *formula);
  const Formula *lowerRandom(const Formula &probability, const ast::Expr &expr);
  const Formula *multiply(Formula::Kind kind, const Formula *left, const Formula *right);
  bool mentionsTensors(const ast::Expr *expr) const;
  const Formula *indexFormula(unsigned index);
  bool isIndex(llvm::StringRef name) const;
  Value *findHandedOn() const;
  std::optional<Size> lowerCost(const ast::Expr *expr);

  // Formulas in place (InPlaceLowering.cpp).
  struct Affine;
  /// The least and the most that a subscript is.
  struct Bounds {
    Size low, high;
    llvm::StringRef unknown; ///< The one index that has no size yet, if there is one,
    Size multiple;           ///< and what it is multiplied by; else null.
  };
  const ast::NameExpr *asIndex(const ast::Expr *expr) const;
  void openIndices(llvm::ArrayRef<ast::Expr *> indices, int change);
  bool forEachSubscript(const ast::Expr *expr,
                        llvm::function_ref<bool(const ast::Expr *, const TensorArgument &, unsigned)> f);
  std::optional<Affine> readAffine(const ast::Expr *expr);
  std::optional<Bounds> boundSubscript(const ast::Expr *subscript);
  void bindFromSubscript(const ast::Expr *subscript, Size extent);
  bool checkSubscript(const ast::Expr *subscript, Size extent);
  void oweBounds(const Bounds &bounds, const ast::Expr *subscript, Size extent);
  bool bindInPlaceIndices(const ast::Expr *formula);
  const Formula *lowerInPlaceElement(const ast::IndexExpr &expr, Value *value);

  // Addends of formulas in place (SplitAddends.cpp).
  Op *finishInPlace(SMRange range, Block &block, llvm::StringRef scope);
  const Formula *splitAddends(const OpLowering &whole, const Formula *formula, SMRange range, Block &block,
                              llvm::StringRef scope);
  void adoptResult(const OpLowering &whole, const Formula *formula);
  unsigned adoptIndex(const OpLowering &whole, unsigned index);
  const Formula *adopt(const OpLowering &whole, const Formula *formula);
  DType getResultType() const;
  // Concatenation (ConcatLowering.cpp).
  static const ast::CallExpr *asConcat(const ast::Expr *formula);
  bool bindPart(const ast::IndexExpr &access, llvm::StringRef along, Size &length);
  const Formula *choosePart(unsigned first, unsigned last, unsigned along, llvm::ArrayRef<Size> ends,
                            llvm::ArrayRef<unsigned> own);
  const Formula *lowerConcat(const ast::CallExpr &call);

  // What subscripts and clauses say, held against dims and formulas (ClauseChecks.cpp).
  struct Guard;
  struct Access;
  class AccessWalker;
  void noteAccess(const Formula *element, llvm::ArrayRef<const ast::Expr *> subscripts);
  std::optional<double> getNumber(Size size) const;
  bool checkMask();
  // What is routed (RouteLowering.cpp).
  bool lowerRoutes();
  bool checkRouted(const Formula *formula);
  std::string joinSubscripts(const ast::IndexExpr &expr, llvm::ArrayRef<Extent> shape) const;
  bool reportLoad(const llvm::Twine &why);
  SMRange loadOrigin; ///< Where the program says how full slots are.
  std::optional<std::vector<int64_t>> readLoad(llvm::ArrayRef<sema::CTValue> elements);
  Size getChoices() const;
  bool noteLoad();
  bool noteTable(const sema::CTValue &load, std::string &table);
  std::string nameTable(SizeTable table, const Dim &target);
  const Dim *nameSlots(SlotLoad load, const Extent &slots);
  bool checkLinear(const OpDef &analyzed, llvm::StringRef name);
  bool checkSubscripts();
  bool checkAccess(const Access &access, const Guard *guard, PointEvaluator &evaluator);
  bool checkDivisor(const ast::BinaryExpr &expr, const Formula &divisor);

  Graph &graph;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  const ComputeTypes &types;
  const sema::Environment *env = nullptr;
  bool inPlace = false;
  const ast::IndexExpr *accessed = nullptr; ///< In place: the tensor whose subscripts are bound now.
  llvm::StringMap<int> openIndexNames;      ///< In place: how often the result and the reductions around name an index.
  llvm::StringSet<> derivedIndices;         ///< In place: those whose size follows from a subscript.
  bool inCast = false;                      ///< Below a cast: integers may become floating-point numbers.
  /// The first operand whose element type is free: the others are integers if it is (R13.5).
  Value *firstFree = nullptr;
  std::string firstFreeName;
  // Of a declared op.
  SMRange calledAt;
  const ast::OpDecl *declared = nullptr;
  llvm::ArrayRef<TensorArgument> given;

  /// An element that is read at more than the indices of its operand.
  struct Access {
    const Formula *element;
    llvm::SmallVector<const ast::Expr *, 4> subscripts; ///< Per dim; null: what a pack stands for.
    llvm::SmallVector<std::optional<Bounds>, 4> bounds; ///< Of subscripts that are sums of multiples of indices.
  };
  std::vector<Access> accesses;
  llvm::DenseMap<const Formula *, unsigned> accessOf;
  llvm::SmallPtrSet<const ast::Expr *, 4> owedSubscripts; ///< That they stay within their dims is owed already.
  const ast::OpClauseStmt *maskClause = nullptr;
  /// Declared costs without a word why the formula has others.
  const ast::OpClauseStmt *flopsClause = nullptr, *backwardClause = nullptr;
  std::string declName; ///< Of a declared op, as it is written.
  const ast::OpClauseStmt *routesClause = nullptr;
  llvm::SmallVector<const ast::OpClauseStmt *, 1> linearClauses;
  llvm::SmallPtrSet<const Formula *, 2> certainDraws; ///< What `random(1)` stands for: 1.

  /// Of a part: what the indices, operands and lets of the whole are in it.
  llvm::DenseMap<unsigned, unsigned> adoptedIndices, adoptedOperands, adoptedLets;

  OpDef def;
  std::vector<OpenCompound> openCompounds; ///< Of the operands of a declared op; their members may have no size yet.
  llvm::SmallVector<Extent, 6> extents;
  llvm::SmallVector<SMLoc, 6> indexLocs; ///< Where an index got its extent.
  llvm::SmallVector<bool, 6> isOwnIndex; ///< The op names it; not so what a pack stands for.
  llvm::SmallVector<Value *, 4> operands;
  llvm::StringMap<unsigned> indexByName, operandByName, letByName; ///< Indices: the op's own only.
  llvm::StringMap<llvm::SmallVector<unsigned, 4>> packs;
};

} // namespace stage

#endif // STAGE_LIB_IRGEN_OPLOWERING_H
