//===- Decimal.h - decimal numbers and sizes of memory ---------*- C++ -*-===//
#ifndef STAGE_SUPPORT_DECIMAL_H
#define STAGE_SUPPORT_DECIMAL_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace stage {

/// `12.5`: the digits of a decimal number without its point (125), and how many are behind it (1); 18 digits at most.
struct Decimal {
  int64_t digits = 0;
  unsigned places = 0;
};
std::optional<Decimal> parseDecimal(llvm::StringRef text);

} // namespace stage

#endif // STAGE_SUPPORT_DECIMAL_H
