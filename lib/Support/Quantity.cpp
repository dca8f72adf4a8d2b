//===- Quantity.cpp - rates and times as text ----------------------------===//
#include "stage/Support/Quantity.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::optional<uint64_t> stage::parseQuantity(llvm::StringRef text, uint64_t unit, uint64_t least) {
  int exponent = 0;
  auto [mantissa, power] = text.split('e');
  if (mantissa.size() < text.size()) {
    if (power.getAsInteger(10, exponent) || exponent < -30 || exponent > 30)
      return std::nullopt;
  } else if (size_t prefix = llvm::StringRef(" kMGTPE").find(text.empty() ? '?' : text.back());
             prefix != llvm::StringRef::npos && prefix > 0) {
    exponent = 3 * int(prefix);
    mantissa = text.drop_back();
  }
  auto [whole, fraction] = mantissa.split('.');
  std::string digits = (whole + fraction).str();
  if (digits.empty() || digits.size() > 30 || !llvm::all_of(digits, llvm::isDigit) ||
      (mantissa.contains('.') && fraction.empty()))
    return std::nullopt;
  unsigned __int128 value = 0;
  for (char digit : digits)
    if (__builtin_mul_overflow(value, (unsigned __int128)10, &value) ||
        __builtin_add_overflow(value, digit - '0', &value))
      return std::nullopt;
  if (__builtin_mul_overflow(value, (unsigned __int128)unit, &value))
    return std::nullopt;
  for (exponent -= int(fraction.size()); exponent > 0; --exponent)
    if (__builtin_mul_overflow(value, (unsigned __int128)10, &value))
      return std::nullopt;
  for (; exponent < 0; ++exponent, value /= 10)
    if (value % 10)
      return std::nullopt;
  if (value < least || value > UINT64_MAX)
    return std::nullopt;
  return uint64_t(value);
}
