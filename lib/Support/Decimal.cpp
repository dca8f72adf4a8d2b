//===- Decimal.cpp - decimal numbers and sizes of memory ------------------===//
#include "stage/Support/Decimal.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

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

std::optional<__int128> stage::parseBytes(StringRef text) {
  StringRef number = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  std::optional<Decimal> decimal = parseDecimal(number);
  int64_t unit = llvm::StringSwitch<int64_t>(text.drop_front(number.size()).ltrim(' '))
                     .Case("B", 1)
                     .Cases("kB", "KB", 1'000)
                     .Case("MB", 1'000'000)
                     .Case("GB", 1'000'000'000)
                     .Case("TB", 1'000'000'000'000)
                     .Case("KiB", int64_t(1) << 10)
                     .Case("MiB", int64_t(1) << 20)
                     .Case("GiB", int64_t(1) << 30)
                     .Case("TiB", int64_t(1) << 40)
                     .Default(0);
  if (!decimal || !unit)
    return std::nullopt;
  __int128 bytes = __int128(decimal->digits) * unit;
  for (unsigned place = 0; place < decimal->places; ++place) {
    if (bytes % 10)
      return std::nullopt;
    bytes /= 10;
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}
