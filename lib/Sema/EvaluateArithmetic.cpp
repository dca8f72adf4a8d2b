//===- EvaluateArithmetic.cpp - operators on compile-time values ----------===//
//
// Three ways, the first that applies: both operands are integers (the common case
// of schedules: machine arithmetic, checked); both are exact (symbolic); otherwise
// doubles, sizes taken under the binding.
//
// A condition is decided under the binding, and remembers how it depends on sizes: a
// *margin* that is positive just where it holds, so that a `require` can be checked again
// under other bindings.
//
//   S < T    T - S          S <= T   T - S + 1        a && b   min(a, b)
//   S == T   1 - |S - T|    S != T   |S - T|          a || b   max(a, b)        !a   1 - a
//
//===----------------------------------------------------------------------===//
#include "EvaluatorSupport.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"
#include "stage/Sema/Suggestions.h"
#include <cmath>

using namespace stage;
using namespace stage::sema;
using ast::BinaryOp;

static bool isComparison(BinaryOp op) { return op >= BinaryOp::Less && op <= BinaryOp::NotEqual; }

/// Whether `a op b`, given how a compares to b.
static bool decide(BinaryOp op, int order) {
  switch (op) {
  case BinaryOp::Less:
    return order < 0;
  case BinaryOp::LessEqual:
    return order <= 0;
  case BinaryOp::Greater:
    return order > 0;
  case BinaryOp::GreaterEqual:
    return order >= 0;
  case BinaryOp::Equal:
    return order == 0;
  default:
    return order != 0;
  }
}

Size stage::sema::roundUp(Size size) { return size.isIntegral() ? size : size.ceilDiv(size.getContext().one()); }

/// Positive just where `a op b` holds.
static Size getMargin(BinaryOp op, Size a, Size b) {
  SizeContext &sizes = a.getContext();
  auto atMost = [&](Size x, Size y) { return sizes.one() - roundUp(x - y); };
  switch (op) {
  case BinaryOp::Less:
    return b - a;
  case BinaryOp::LessEqual:
    return atMost(a, b);
  case BinaryOp::Greater:
    return a - b;
  case BinaryOp::GreaterEqual:
    return atMost(b, a);
  case BinaryOp::Equal:
    return sizes.one() - roundUp(max(a - b, b - a));
  default:
    return max(a - b, b - a);
  }
}

std::optional<CTValue> Evaluator::evaluateUnary(const ast::UnaryExpr *expr, const Environment &env) {
  if (expr->op == ast::UnaryOp::Not) {
    std::optional<CTValue> operand = evaluateTruth(expr->operand, env);
    if (!operand)
      return std::nullopt;
    Size margin = operand->getMargin();
    return CTValue::boolean(!operand->getBool(), margin ? sizes.one() - roundUp(margin) : margin);
  }
  std::optional<CTValue> operand = evaluate(expr->operand, env);
  if (!operand)
    return std::nullopt;
  if (operand->isQuantity())
    return makeQuantity(operand->getSize(sizes) * -1, operand->getDimension(), expr);
  if (!operand->isNumber())
    return report(expr->operand, diag::WrongKind, "a number", operand->describeKind());
  Size size = operand->getSize(sizes);
  if (operand->isReal())
    return CTValue::real(-operand->getReal(), size ? size * -1 : Size());
  return makeSize(size * -1, expr);
}

std::optional<CTValue> Evaluator::evaluateBinary(const ast::BinaryExpr *expr, const Environment &env) {
  if (expr->op == BinaryOp::And || expr->op == BinaryOp::Or) {
    bool isOr = expr->op == BinaryOp::Or;
    std::optional<CTValue> left = evaluateTruth(expr->left, env);
    if (!left || left->getBool() == isOr)
      return left;
    std::optional<CTValue> right = evaluateTruth(expr->right, env);
    if (!right)
      return std::nullopt;
    Size a = left->getMargin(), b = right->getMargin();
    if (!b && right->getBool() == isOr) // it decides whatever the sizes are
      return right;
    return CTValue::boolean(right->getBool(), !a ? b : !b ? a : isOr ? max(a, b) : min(a, b));
  }
  std::optional<CTValue> left = evaluate(expr->left, env), right = evaluate(expr->right, env);
  if (!left || !right)
    return std::nullopt;
  if ((left->isQuantity() || right->isQuantity()) && !left->isNone() && !right->isNone())
    return evaluateQuantities(expr, *left, *right);
  return isComparison(expr->op) ? evaluateComparison(expr, *left, *right) : evaluateArithmetic(expr, *left, *right);
}

std::optional<CTValue> Evaluator::evaluateIntegers(const ast::BinaryExpr *expr, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (expr->op) {
  case BinaryOp::Add:
    overflows = __builtin_add_overflow(left, right, &result);
    break;
  case BinaryOp::Sub:
    overflows = __builtin_sub_overflow(left, right, &result);
    break;
  case BinaryOp::Mul:
    overflows = __builtin_mul_overflow(left, right, &result);
    break;
  default: { // the three divisions
    if (right == 0)
      return report(expr, diag::DivisionByZero, textOf(expr));
    if (right == -1) { // the one quotient that can overflow
      overflows = expr->op != BinaryOp::Mod && __builtin_sub_overflow(int64_t(0), left, &result);
      break;
    }
    bool divides = left % right == 0;
    bool roundsDown = !divides && (left < 0) != (right < 0);
    if (expr->op == BinaryOp::Mod) {
      result = left % right + (roundsDown ? right : 0);
    } else if (expr->op == BinaryOp::FloorDiv || divides) {
      result = left / right - (roundsDown ? 1 : 0);
    } else {
      if (owesDivisions)
        obligations.add(Obligations::Kind::Divides, sizes.constant(left), sizes.constant(right), expr->loc(),
                        "'" + textOf(expr) + "' is exact");
      sawDivision = true;
      return CTValue::size(sizes.constant(left) / sizes.constant(right));
    }
  }
  }
  if (overflows)
    return report(expr, diag::ValueOverflows, "'" + textOf(expr) + "'");
  return CTValue::integer(result);
}

/// A real number. What is none would be equal to everything, so that no `require` could fail.
std::optional<CTValue> Evaluator::makeReal(double value, Size exact, const ast::Expr *expr) {
  if (std::isnan(value))
    return report(expr, diag::NotANumber, textOf(expr));
  return CTValue::real(value, exact);
}

/// A size, unless it is known to have no value.
std::optional<CTValue> Evaluator::makeSize(Size size, const ast::Expr *expr) {
  SizeCheck value = checkValue(size, binding);
  if (value.error == SizeError::DivisionByZero)
    return report(expr, diag::DivisionByZero, textOf(expr));
  if (value.error == SizeError::TooDeep)
    return report(expr, diag::ValueTooDeep, textOf(expr));
  if (value.error == SizeError::Overflow)
    return report(expr, diag::ValueOverflows, "'" + textOf(expr) + "'");
  return CTValue::size(size);
}

std::optional<CTValue> Evaluator::evaluateArithmetic(const ast::BinaryExpr *expr, const CTValue &left,
                                                     const CTValue &right) {
  if (!left.isNumber() || !right.isNumber()) {
    DiagnosticBuilder error =
        diags.report(expr->opLoc, diag::OperandKinds).range(expr->left->range).range(expr->right->range)
        << spell(expr->op) << left.describeKind() << right.describeKind();
    if (left.isAxes() || right.isAxes())
      error.note(SMLoc(), diag::RanksOfAxes);
    if (left.isDecl() && right.isDecl())
      error.note(SMLoc(), diag::PartsByWith);
    const CTValue &named = left.isDecl() ? left : right;
    if (named.isDecl() && llvm::isa<ast::MachineDecl>(named.getDecl()))
      error.note(SMLoc(), diag::NameInstead) << "the number of ranks is that of the strategy's mesh: write '" +
                                                    named.getDecl()->name.name.str() + "' alone";
    return std::nullopt;
  }
  std::optional<int64_t> leftInteger = left.getInteger(), rightInteger = right.getInteger();
  if (leftInteger && rightInteger)
    return evaluateIntegers(expr, *leftInteger, *rightInteger);

  Size a = left.getSize(sizes), b = right.getSize(sizes);
  bool isReal = left.isReal() && right.isReal();
  bool isExact = a && b;
  double x = 0, y = 0;
  if (isReal || !isExact) {
    std::optional<double> first = getDouble(left, expr->left->range), second = getDouble(right, expr->right->range);
    if (!first || !second)
      return std::nullopt;
    x = *first;
    y = *second;
  }
  auto make = [&](double real, Size exact) -> std::optional<CTValue> {
    return isReal || !isExact ? makeReal(real, exact, expr) : makeSize(exact, expr);
  };
  auto exactly = [&](auto operation) { return isExact ? operation(a, b) : Size(); };
  switch (expr->op) {
  case BinaryOp::Add:
    return make(x + y, exactly([](Size a, Size b) { return a + b; }));
  case BinaryOp::Sub:
    return make(x - y, exactly([](Size a, Size b) { return a - b; }));
  case BinaryOp::Mul:
    return make(x * y, exactly([](Size a, Size b) { return a * b; }));
  default:
    break;
  }

  if (isExact ? b.isConstant(0) : y == 0)
    return report(expr, diag::DivisionByZero, textOf(expr));
  if (expr->op == BinaryOp::Div) {
    // Sizes are counts, and must come out even; a real may be a fraction.
    if (left.isSize() && right.isSize()) {
      if (owesDivisions)
        obligations.add(Obligations::Kind::Divides, a, b, expr->loc(), "'" + textOf(expr) + "' is exact");
      sawDivision = true;
    }
    return make(x / y, exactly([](Size a, Size b) { return a / b; }));
  }
  if (isExact)
    return makeSize(expr->op == BinaryOp::Mod ? a.mod(b) : a.floorDiv(b), expr);
  double quotient = std::floor(x / y);
  return makeReal(expr->op == BinaryOp::Mod ? x - quotient * y : quotient, Size(), expr);
}

std::optional<CTValue> Evaluator::compareExactly(BinaryOp op, const CTValue &left, const CTValue &right) {
  std::optional<Rational> first = getExact(left), second = getExact(right);
  if (!first || !second)
    return std::nullopt;
  return CTValue::boolean(decide(op, first->compare(*second)),
                          getMargin(op, left.getSize(sizes), right.getSize(sizes)));
}

std::optional<CTValue> Evaluator::evaluateComparison(const ast::BinaryExpr *expr, const CTValue &left,
                                                     const CTValue &right) {
  auto result = [&](int order) { return CTValue::boolean(decide(expr->op, order)); };
  if (left.isNumber() && right.isNumber()) {
    std::optional<int64_t> leftInteger = left.getInteger(), rightInteger = right.getInteger();
    if (leftInteger && rightInteger)
      return result(*leftInteger < *rightInteger ? -1 : *leftInteger > *rightInteger);
    Size a = left.getSize(sizes), b = right.getSize(sizes);
    if (a && a == b)
      return result(0);
    if (std::optional<CTValue> exact = compareExactly(expr->op, left, right))
      return exact;
    std::optional<double> x = getDouble(left, expr->left->range);
    std::optional<double> y = x ? getDouble(right, expr->right->range) : std::nullopt;
    if (!y)
      return std::nullopt;
    return result(*x < *y ? -1 : *x > *y);
  }

  bool isEquality = expr->op == BinaryOp::Equal || expr->op == BinaryOp::NotEqual;
  if (isEquality && (left.isNone() || right.isNone()))
    return result(!isSame(left, right));
  constexpr CTValue::Kind compared[] = {CTValue::Kind::Bool, CTValue::Kind::String, CTValue::Kind::Word,
                                        CTValue::Kind::Decl};
  if (isEquality && left.getKind() == right.getKind() && llvm::is_contained(compared, left.getKind()))
    return result(!isSame(left, right));
  // A parameter may take both, for example `keep in [true, false, last]`.
  auto isChoice = [](const CTValue &value) {
    return value.getKind() == CTValue::Kind::Bool || value.getKind() == CTValue::Kind::Word;
  };
  if (isEquality && isChoice(left) && isChoice(right))
    return result(!isSame(left, right));
  DiagnosticBuilder error =
      diags.report(expr->opLoc, diag::OperandKinds).range(expr->left->range).range(expr->right->range)
      << spell(expr->op) << left.describeKind() << right.describeKind();
  if (left.isAxes() || right.isAxes())
    error.note(SMLoc(), diag::RanksOfAxes);
  return std::nullopt;
}
