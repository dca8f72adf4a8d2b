//===- SizeMessages.cpp - what messages say of symbols --------------------===//
#include "stage/Symbolic/SizeMessages.h"
#include "SizeNode.h"
#include "stage/Symbolic/Diagnostics.h"

using namespace stage;

void stage::setOrigin(SizeContext &sizes, llvm::StringRef symbol, SMRange origin) {
  sizes.getImpl().origins[symbol] = origin;
}

SMRange stage::findOrigin(SizeContext &sizes, llvm::StringRef symbol) { return sizes.getImpl().origins.lookup(symbol); }

void stage::clearOrigins(SizeContext &sizes) { sizes.getImpl().origins.clear(); }

/// `4 and 8` of 64 near 6: the divisors below and above. Where none is near, 1 stands for those below.
static std::string listDivisorsNear(int64_t number, int64_t near) {
  constexpr int64_t mostTried = 1 << 16;
  auto find = [&](int64_t from, int64_t step) -> int64_t {
    for (int64_t i = 0, each = from; i < mostTried && each > 0 && each <= number; ++i, each += step)
      if (number % each == 0)
        return each;
    return 0;
  };
  int64_t below = std::max<int64_t>(find(std::min(near, number), -1), 1), above = find(near, 1);
  return std::to_string(below) + (above && above != below ? " and " + std::to_string(above) : "");
}

/// `nearest values: cp = 2 and cp = 4` of 4096 and 2*cp.
static std::string listValuesNear(Size number, Size divisor, llvm::StringRef symbol, const SizeBinding &binding) {
  constexpr int64_t mostTried = 1 << 12;
  int64_t now = *binding.lookup(symbol);
  auto find = [&](int64_t step) -> int64_t {
    SizeBinding other = binding;
    for (int64_t i = 0, each = now + step; i < mostTried && each > 0; ++i, each += step) {
      other.bind(symbol, each);
      SizeValue left = evaluate(number, other), right = evaluate(divisor, other);
      if (left && right && right.value.isInteger() && right.value.num > 0 && left.value.num % right.value.num == 0)
        return each;
    }
    return 0;
  };
  std::string text;
  for (int64_t each : {find(-1), find(1)})
    if (each)
      text += (text.empty() ? "nearest values: " : " and ") + (symbol + " = ").str() + std::to_string(each);
  return text;
}

void stage::noteNearest(DiagnosticBuilder &error, Size number, Size divisor, const SizeBinding &binding) {
  SizeValue left = evaluate(number, binding), right = evaluate(divisor, binding);
  bool areWhole = left && right && left.value.isInteger() && right.value.isInteger();
  if (number.getSymbol().empty() || !areWhole || right.value.num < 2 || left.value.num < 1)
    return;
  int64_t step = int64_t(right.value.num), below = int64_t(left.value.num / step * step);
  std::vector<std::string> symbols = collectSymbols(divisor);
  std::string divisors = symbols.size() > 1 ? ""
                         : symbols.empty() || !divisor.getSymbol().empty()
                             ? "; nearest divisors of " + std::to_string(int64_t(left.value.num)) + ": " +
                                   listDivisorsNear(int64_t(left.value.num), step)
                             : "; " + listValuesNear(number, divisor, symbols.front(), binding);
  error.note(SMLoc(), diag::NearestMultiples)
      << step << (below ? std::to_string(below) + " and " : std::string()) + std::to_string(below + step) << divisors;
}
