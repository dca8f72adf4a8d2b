//===- Evaluator.h - compile-time evaluation -------------------*- C++ -*-===//
//
// Evaluates expressions over an environment. Arithmetic on sizes is symbolic and
// exact; conditions are decided under the job's binding of symbols.
//
//   D / H              the size D/H; owed from here on: D % H == 0
//   S div 2, S % cp    floor division and its remainder
//   ceildiv(C*X, K)  min(m, p - r)  max(0, a)
//   i >= DENSE && H % KV == 0      true or false
//   if v == 1 { one_f_one_b } else { interleaved(v) }     only the taken branch is evaluated
//
// A number written with a point is real. A real that is exact stays a size with a
// size (`1.25 * S` is 5*S/4); otherwise the result is real and the size is taken
// under the binding. What must be a size must be an exact integer.
//
// Faults are reported where they are, and give nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_EVALUATOR_H
#define STAGE_SEMA_EVALUATOR_H

#include "stage/Sema/Program.h"
#include "stage/Sema/Value.h"

namespace stage::sema {

class Evaluator {
public:
  /// All must outlive the evaluator. `binding` may grow while it is used.
  Evaluator(const Program &program, SizeContext &sizes, const SizeBinding &binding, Obligations &obligations,
            DiagnosticEngine &diags)
      : program(program), sizes(sizes), binding(binding), obligations(obligations), diags(diags) {}

  std::optional<CTValue> evaluate(const ast::Expr *expr, const Environment &env);
  /// A size, symbolic. Where the form does not show that it is an integer, that is owed.
  std::optional<Size> evaluateSize(const ast::Expr *expr, const Environment &env);
  /// The value of a size under the binding; `what` names it in messages ("axis 'tp'").
  std::optional<int64_t> evaluateInteger(const ast::Expr *expr, const Environment &env, const llvm::Twine &what);
  /// Which way it goes is noted (Obligations::noteChoice, noteDecision).
  std::optional<bool> evaluateCondition(const ast::Expr *expr, const Environment &env);
  /// The same with its margin.
  std::optional<CTValue> evaluateTruth(const ast::Expr *expr, const Environment &env);
  /// A number as a scalar: sizes count as numbers, under the binding, and `1 / H` owes nothing.
  std::optional<double> evaluateReal(const ast::Expr *expr, const Environment &env);

  /// A whole number of bytes, written with its unit.
  std::optional<int64_t> evaluateBytes(const ast::Expr *expr, const Environment &env, const llvm::Twine &what);

  /// A value as what a parameter or a use wants. Null `kind`: any. Wanting `real` turns sizes into reals, `size` and
  /// `int` exact reals into sizes; otherwise a wrong kind is reported at `loc`.
  std::optional<CTValue> convert(const CTValue &value, const ast::Ident &kind, SMRange range, const llvm::Twine &what);
  /// The value of a parameter, one of its legal ones. `none` is one of each kind where it is the default. `callee` has
  /// the parameters before it.
  std::optional<CTValue> convert(const CTValue &value, const ast::Param &param, const Environment &callee,
                                 SMRange range);
  /// The default value, in `env` (where earlier parameters are defined), or the given argument, converted.
  std::optional<CTValue> evaluateParam(const ast::Param &param, const ast::Argument *argument,
                                       const Environment &callee, const Environment &caller);

  /// Whether a value is an amount of the dimension, or of anything per second; reported at `range` if not.
  bool checkQuantity(const CTValue &value, Dimension wanted, bool isAnyRate, SMRange range, const llvm::Twine &what);

  /// Whether two values are the same. A declaration without arguments is the same as with any.
  bool isSame(const CTValue &a, const CTValue &b);
  /// The value of a size under the binding; reported at `range` if it has none or is no integer.
  std::optional<int64_t> getValue(Size size, SMRange range, const llvm::Twine &what);
  /// The exact value; nothing (unreported) if it has none.
  std::optional<Rational> getExact(const CTValue &value);

  /// The nearest number; reported at `range` if it is none.
  std::optional<double> getDouble(const CTValue &value, SMRange range);

  /// Evaluates a `require`; false after reporting that it does not hold, or that it has no value. That it holds is owed
  /// from then on, whatever the sizes.
  bool checkRequire(const ast::RequireStmt &require, const Environment &env);
  /// A message with the values of what stands in braces.
  std::string interpolate(ArrayRef<ast::MessagePart> parts, const Environment &env);
  /// As a message shows it: sizes under the binding (`32`), declarations by name.
  std::string format(const CTValue &value);

  /// What `has(V)` asks; until it is set nobody may.
  void setModel(const ast::ModuleDecl *decl) { model = decl; }
  const ast::ModuleDecl *getModel() const { return model; }
  /// What `decoding`, `continuing` and `inferring` are from then on.
  struct Phase {
    bool decoding = false, continuing = false, inferring = false;
  };
  void setPhase(Phase value) { phase = value; }
  Phase getPhase() const { return phase; }

  /// After this many more steps (an expression evaluated, an iteration) evaluation fails; the caller reports it.
  void setStepLimit(uint64_t steps) { stepsLeft = steps; }
  bool isOutOfSteps() const { return stepsLeft == 0; }
  /// Counts a step; false if none was left.
  bool step() { return stepsLeft && --stepsLeft; }

  /// Calls of declared functions, and elements of lists, that one program may take.
  static constexpr uint64_t maxWork = uint64_t(1) << 22;

  const Program &getProgram() const { return program; }
  SizeContext &getSizes() { return sizes; }
  const SizeBinding &getBinding() const { return binding; }
  Obligations &getObligations() { return obligations; }
  DiagnosticEngine &getDiags() { return diags; }

private:
  void setOrigins(DiagnosticBuilder &error, const ast::Expr *expr, const Environment &env);
  std::optional<CTValue> evaluateName(const ast::NameExpr *expr, const Environment &env);
  std::optional<CTValue> evaluateUnary(const ast::UnaryExpr *expr, const Environment &env);
  std::optional<CTValue> evaluateBinary(const ast::BinaryExpr *expr, const Environment &env);
  std::optional<CTValue> evaluateArithmetic(const ast::BinaryExpr *expr, const CTValue &left, const CTValue &right);
  std::optional<CTValue> evaluateQuantities(const ast::BinaryExpr *expr, const CTValue &left, const CTValue &right);
  std::optional<CTValue> makeQuantity(Size value, Dimension dimension, const ast::Expr *expr);
  /// Of a kind of parameters; nothing of another kind.
  static std::optional<Dimension> findDimension(StringRef kind);
  /// A default value or legal values, in which the parameter itself may not be needed.
  std::optional<CTValue> evaluateOnce(const ast::Expr *expr, const ast::Param &param, const Environment &callee);
  bool checkLegal(const CTValue &value, const ast::Param &param, const Environment &callee, SMRange range);
  std::optional<CTValue> evaluateListFunction(const ast::CallExpr *expr, StringRef name, const Environment &env);
  bool checkDimensions(const ast::Expr *expr, StringRef what, ArrayRef<CTValue> values);
  std::optional<CTValue> evaluateIntegers(const ast::BinaryExpr *expr, int64_t left, int64_t right);
  /// Nothing where one has no exact value.
  std::optional<CTValue> compareExactly(ast::BinaryOp op, const CTValue &left, const CTValue &right);
  std::optional<CTValue> evaluateComparison(const ast::BinaryExpr *expr, const CTValue &left, const CTValue &right);
  std::optional<CTValue> evaluateCall(const ast::CallExpr *expr, const Environment &env);
  std::optional<CTValue> evaluateBuiltinCall(const ast::CallExpr *expr, StringRef name, const Environment &env);
  std::optional<CTValue> evaluateModelQuery(const ast::CallExpr *expr);
  std::optional<CTValue> evaluateBalanced(const ast::CallExpr *expr);
  std::optional<CTValue> evaluateFunction(const ast::CallExpr *expr, const ast::FnStmt &fn, const Environment &env);
  std::optional<CTValue> evaluateFunction(const ast::CallExpr *expr, const ast::FnDecl &fn, const Environment &env);
  std::optional<CTValue> evaluateListFor(const ast::ListForExpr *expr, const Environment &env);
  bool work(const ast::Expr *expr);
  void noteDecision(const ast::Expr *condition, const CTValue &value, const Environment &env);
  std::optional<CTValue> evaluateMinMax(const ast::CallExpr *expr, bool isMin, ArrayRef<CTValue> args);
  std::optional<CTValue> evaluateIndex(const ast::IndexExpr *expr, const Environment &env);
  std::optional<CTValue> makeSize(Size size, const ast::Expr *expr);
  std::optional<CTValue> makeReal(double value, Size exact, const ast::Expr *expr);
  /// Says which symbol has no value.
  void reportUnbound(Size size, StringRef symbol, SMRange range);
  std::optional<std::vector<CTValue>> evaluateAll(ArrayRef<ast::Expr *> exprs, const Environment &env);
  template <diag::Kind... Missing, typename... Arguments>
  std::nullopt_t report(const ast::Expr *expr, diag::Message<Missing...> message, const Arguments &...arguments) {
    diags.report(expr->loc(), message).range(expr->range).with(arguments...);
    return std::nullopt;
  }

  const Program &program;
  SizeContext &sizes;
  const SizeBinding &binding;
  Obligations &obligations;
  DiagnosticEngine &diags;
  const ast::ModuleDecl *model = nullptr;
  Phase phase;
  bool owesDivisions = true; ///< Off while a scalar is evaluated.
  bool sawDivision = false;  ///< The size under evaluation has recorded what it owes.
  uint64_t stepsLeft = UINT64_MAX;
  /// Calls of declared functions, and elements of lists that are made, that are still allowed.
  uint64_t workLeft = maxWork;
  llvm::SmallVector<const ast::Node *, 4> calling; ///< Functions under evaluation.
};

/// Where the value of an expression is written: for a name, where that of the name is.
SMRange getOrigin(const ast::Expr *expr, const Environment &env);

} // namespace stage::sema

#endif // STAGE_SEMA_EVALUATOR_H
