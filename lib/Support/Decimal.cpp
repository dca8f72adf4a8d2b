//===- Decimal.cpp - decimal numbers ------------------===//
#include "stage/Support/Decimal.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using llvm::StringRef;

std::optional<Decimal> stage::parseDecimal(StringRef text) {
  auto [whole, fraction] = text.split('.');
  std::string all = (whole + fraction).str();
  Decimal result;
  result.places = unsigned(fraction.size());
  bool isGood = !whole.empty() && text.back() != '.' && all.size() <= 18 && llvm::all_of(all, llvm::isDigit) &&
                !StringRef(all).getAsInteger(10, result.digits);
  return isGood ? std::optional(result) : std::nullopt;
}
