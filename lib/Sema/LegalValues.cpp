//===- LegalValues.cpp - values that a parameter may have -----------------===//
//
// Problem: `zero = 4` means nothing, and a strategy that forgets to say so is compiled as one without ZeRO.
//
//   strategy s(tp in powers(2, 1..9) = 1, zero in [0, 1, 2, 3] = 0, recompute in [none, selective, full] = none)
//
// A parameter has one of the values of a list, or of a range, which lacks its end as everywhere. The values are
// evaluated where the parameters before it are known. Two functions make lists:
//
//   powers(2, 1..9) = [1, 2, 4, 8]       divisors(12) = [1, 2, 3, 4, 6, 12]
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"
#include "stage/Support/Origins.h"

using namespace stage;
using namespace stage::sema;

bool Evaluator::isSame(const CTValue &a, const CTValue &b) {
  std::optional<Rational> first = getExact(a), second = getExact(b);
  if (first && second)
    return a.isQuantity() == b.isQuantity() && a.getDimension() == b.getDimension() && *first == *second;
  if (a.isNone() || b.isNone()) { // no axes are `none`
    auto isNone = [](const CTValue &value) {
      return value.isNone() || (value.isAxes() && value.getElements().empty());
    };
    return isNone(a) && isNone(b);
  }
  if (a.getKind() != b.getKind())
    return false;
  switch (a.getKind()) {
  case CTValue::Kind::Real:
    return a.getReal() == b.getReal();
  case CTValue::Kind::Bool:
    return a.getBool() == b.getBool();
  case CTValue::Kind::String:
  case CTValue::Kind::Word:
    return a.getText() == b.getText();
  case CTValue::Kind::Decl: { // `interleaved` is each `interleaved(v = ...)`
    ArrayRef<NamedValue> mine = a.getArguments(), theirs = b.getArguments();
    return a.getDecl() == b.getDecl() &&
           (mine.empty() || theirs.empty() ||
            (mine.size() == theirs.size() && llvm::all_of(llvm::zip(mine, theirs), [&](auto pair) {
               return std::get<0>(pair).name.name == std::get<1>(pair).name.name &&
                      isSame(std::get<0>(pair).value, std::get<1>(pair).value);
             })));
  }
  case CTValue::Kind::List:
  case CTValue::Kind::Tuple:
  case CTValue::Kind::Axes:
  case CTValue::Kind::Range:
    return a.getElements().size() == b.getElements().size() &&
           llvm::all_of(llvm::zip(a.getElements(), b.getElements()),
                        [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
  default:
    return false;
  }
}

bool Evaluator::checkLegal(const CTValue &value, const ast::Param &param, const Environment &callee, SMRange range) {
  std::optional<CTValue> legal = evaluateOnce(param.legal, param, callee);
  if (!legal)
    return false;
  bool isLegal = false;
  if (legal->getKind() == CTValue::Kind::Range) {
    std::optional<Rational> number = value.isNumber() ? getExact(value) : std::nullopt;
    std::optional<Rational> begin = getExact(legal->getElements()[0]), end = getExact(legal->getElements()[1]);
    isLegal =
        number && begin && end && number->isInteger() && begin->compare(*number) <= 0 && number->compare(*end) < 0;
  } else if (legal->getKind() == CTValue::Kind::List) {
    isLegal = llvm::any_of(legal->getElements(), [&](const CTValue &element) { return isSame(element, value); });
  } else {
    report(param.legal, diag::WrongKind, "a list or a range of legal values", legal->describeKind());
    return false;
  }
  if (isLegal)
    return true;
  DiagnosticBuilder error =
      diags.report(range.Start, diag::ValueNotLegal)
          .range(range)
          .with(param.name.name, format(*legal),
                value.getKind() == CTValue::Kind::String ? "the text \"" + format(value) + "\": leave the quotes out"
                                                         : format(value));
  error.note(param.legal->loc(), diag::LegalHere) << param.name.name;
  setOrigin(error, value.getOrigin());
  return false;
}

std::optional<CTValue> Evaluator::evaluateListFunction(const ast::CallExpr *expr, StringRef name,
                                                       const Environment &env) {
  bool isPowers = name == "powers";
  if (expr->args.size() != (isPowers ? 2 : 1)) {
    diags.report(expr->loc(), diag::WrongArgumentCount).range(expr->range)
        << name << (isPowers ? "2" : "1") << int64_t(expr->args.size());
    return std::nullopt;
  }
  constexpr int64_t most = 1'000'000'000'000;
  std::optional<int64_t> number = evaluateInteger(expr->args[0].value, env, "'" + textOf(expr->args[0].value) + "'");
  if (!number)
    return std::nullopt;
  if (*number < (isPowers ? 2 : 1) || *number > most)
    return report(expr->args[0].value, diag::WrongKind, isPowers ? "a base of at least 2" : "a number of at least 1",
                  std::to_string(*number));
  std::vector<CTValue> values;
  if (!isPowers) {
    std::vector<int64_t> large; // beside each small divisor
    for (int64_t divisor = 1; divisor <= *number / divisor; ++divisor)
      if (*number % divisor == 0) {
        values.push_back(CTValue::integer(divisor));
        if (divisor != *number / divisor)
          large.push_back(*number / divisor);
      }
    for (int64_t divisor : llvm::reverse(large))
      values.push_back(CTValue::integer(divisor));
    return CTValue::list(std::move(values));
  }
  std::optional<CTValue> range = evaluate(expr->args[1].value, env);
  if (!range)
    return std::nullopt;
  bool isRange = range->getKind() == CTValue::Kind::Range;
  std::optional<int64_t> begin = isRange ? range->getElements()[0].getInteger() : std::nullopt;
  std::optional<int64_t> end = isRange ? range->getElements()[1].getInteger() : std::nullopt;
  if (!begin || !end)
    return report(expr->args[1].value, diag::WrongKind, "a range, as in 1..9", format(*range));
  int64_t power = 1;
  do
    if (power >= *begin && power < *end)
      values.push_back(CTValue::integer(power));
  while (power < *end && !__builtin_mul_overflow(power, *number, &power));
  return CTValue::list(std::move(values));
}
