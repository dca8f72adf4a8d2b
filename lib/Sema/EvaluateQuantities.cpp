//===- EvaluateQuantities.cpp - operators on amounts with a unit ----------===//
//
// Amounts of one dimension are added, subtracted and compared; products and quotients combine dimensions, and one
// without a dimension is a number. All is exact.
//
//   80GiB - 2GiB = 78GiB        80GiB / 2GiB = 40         450GB/s * 2us = 900kB
//   80GiB + 4                   refused: 4 what?          80GiB * sqrt(2)    refused: no exact number
//
//===----------------------------------------------------------------------===//
#include "EvaluatorSupport.h"
#include "Meanings.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"

using namespace stage;
using namespace stage::sema;
using ast::BinaryOp;

std::optional<CTValue> Evaluator::makeQuantity(Size value, Dimension dimension, const ast::Expr *expr) {
  if (!dimension.isNumber()) {
    SizeValue checked = stage::evaluate(value, binding);
    if (checked.error == SizeError::Overflow)
      return report(expr, diag::QuantityOverflows, textOf(expr));
    return CTValue::quantity(value, dimension);
  }
  std::optional<Rational> constant = value.getConstant();
  if (constant && !constant->isInteger())
    return makeReal(constant->toDouble(), value, expr);
  return makeSize(value, expr);
}

std::optional<Dimension> Evaluator::findDimension(StringRef kind) {
  if (kind == "bytes")
    return Dimension::ofBytes();
  if (kind == "time")
    return Dimension::ofTime();
  if (kind == "rate")
    return Dimension::ofBytesPerSecond();
  return std::nullopt;
}

/// `'80GB' or '80MB'` for 80, `'450GB/s'` for 450GB.
static std::string makeQuantityExample(const CTValue &value, std::optional<Rational> number, Dimension wanted,
                                       const std::string &written) {
  if (value.isQuantity() && value.getDimension() == Dimension::ofBytes() && wanted == Dimension::ofBytesPerSecond())
    return "'" + written + "/s'";
  if (number && number->num == 0 && wanted == Dimension::ofBytes())
    return "'0B'";
  if (!number || !number->isInteger() || number->num <= 0)
    return "'" + wanted.getExample() + "'";
  std::string digits = number->str();
  constexpr int64_t mostOfLargeUnit = 100'000;
  if (wanted == Dimension::ofBytes())
    return number->num < mostOfLargeUnit ? "'" + digits + "MB' or '" + digits + "GB'"
                                         : "'" + Quantity{*number, wanted}.str() + "'";
  if (wanted == Dimension::ofTime())
    return "'" + digits + "us'";
  if (wanted == Dimension::ofBytesPerSecond() && number->num < mostOfLargeUnit)
    return "'" + digits + "GB/s'";
  // 989e12 operations per second.
  constexpr int64_t tera = 1'000'000'000'000;
  if (wanted == Dimension::ofFlopsPerSecond() && number->num >= tera && number->num % tera == 0)
    return "'" + std::to_string(int64_t(number->num / tera)) + "TFLOP/s'";
  return "'" + wanted.getExample() + "'";
}

bool Evaluator::checkQuantity(const CTValue &value, Dimension wanted, bool isAnyRate, SMRange range,
                              const llvm::Twine &what) {
  Dimension found = value.getDimension();
  if (value.isQuantity() && (found == wanted || (isAnyRate && found.seconds == -1)))
    return true;
  std::optional<Rational> number = value.isNumber() ? getExact(value) : std::nullopt;
  diags.report(range.Start, diag::QuantityWanted)
      .range(range)
      .with(what, isAnyRate ? "something per second" : wanted.describe(), format(value),
            makeQuantityExample(value, number, wanted, getText(range)));
  return false;
}

std::optional<int64_t> Evaluator::evaluateBytes(const ast::Expr *expr, const Environment &env,
                                                const llvm::Twine &what) {
  std::optional<CTValue> value = evaluate(expr, env);
  if (!value || !checkQuantity(*value, Dimension::ofBytes(), /*isAnyRate=*/false, expr->range, what))
    return std::nullopt;
  return getValue(value->getSize(sizes), expr->range, what);
}

/// `80GiB + 4`.
bool Evaluator::checkDimensions(const ast::Expr *expr, StringRef what, ArrayRef<CTValue> values) {
  const CTValue *first = llvm::find_if(values, [](const CTValue &value) { return value.isQuantity(); });
  for (const CTValue &value : values) {
    if (value.isQuantity() && value.getDimension() == first->getDimension())
      continue;
    diags.report(expr->loc(), diag::DimensionsDiffer).range(expr->range)
        << what << first->getDimension().describe()
        << (value.isQuantity() ? value.getDimension().describe() : value.describeKind().str())
        << first->getDimension().getExample();
    return false;
  }
  return true;
}

std::optional<CTValue> Evaluator::evaluateQuantities(const ast::BinaryExpr *expr, const CTValue &left,
                                                     const CTValue &right) {
  auto isAmount = [](const CTValue &value) { return value.isQuantity() || value.isNumber(); };
  if (!isAmount(left) || !isAmount(right) || expr->op == BinaryOp::Mod || expr->op == BinaryOp::FloorDiv) {
    diags.report(expr->opLoc, diag::OperandKinds).range(expr->left->range).range(expr->right->range)
        << spell(expr->op) << left.describeKind() << right.describeKind();
    return std::nullopt;
  }
  Size a = left.getSize(sizes), b = right.getSize(sizes);
  if (!a || !b)
    return report(a ? expr->right : expr->left, diag::WrongKind, "an exact number beside a quantity",
                  "'" + textOf(a ? expr->right : expr->left) + "', which is rounded");
  switch (expr->op) {
  case BinaryOp::Mul:
  case BinaryOp::Div: {
    if (expr->op == BinaryOp::Div && b.isConstant(0))
      return report(expr, diag::DivisionByZero, textOf(expr));
    bool divides = expr->op == BinaryOp::Div;
    std::optional<Dimension> dimension =
        divides ? left.getDimension().divide(right.getDimension()) : left.getDimension().multiply(right.getDimension());
    if (!dimension)
      return report(expr, diag::ValueOverflows, "'" + textOf(expr) + "'");
    return makeQuantity(divides ? a / b : a * b, *dimension, expr);
  }
  case BinaryOp::Add:
  case BinaryOp::Sub:
    if (!checkDimensions(expr, spell(expr->op), {left, right}))
      return std::nullopt;
    return makeQuantity(expr->op == BinaryOp::Add ? a + b : a - b, left.getDimension(), expr);
  default:
    if (!checkDimensions(expr, spell(expr->op), {left, right}))
      return std::nullopt;
    if (std::optional<CTValue> result = compareExactly(expr->op, left, right))
      return result;
    return report(expr, diag::ValueOverflows, "'" + textOf(expr) + "'");
  }
}
