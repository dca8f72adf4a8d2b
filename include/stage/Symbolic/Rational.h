//===- Rational.h - checked 128-bit rationals ------------------*- C++ -*-===//
#ifndef STAGE_SYMBOLIC_RATIONAL_H
#define STAGE_SYMBOLIC_RATIONAL_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace stage {

/// A 128-bit rational in lowest terms, denominator positive. Operations return
/// nothing on overflow or division by zero.
struct Rational {
  __int128 num = 0;
  __int128 den = 1;

  static std::optional<Rational> make(__int128 num, __int128 den);
  static Rational integer(int64_t value) { return {value, 1}; }
  bool isInteger() const { return den == 1; }
  bool operator==(const Rational &other) const { return num == other.num && den == other.den; }
  std::optional<Rational> add(const Rational &other) const;
  std::optional<Rational> sub(const Rational &other) const;
  std::optional<Rational> mul(const Rational &other) const;
  std::optional<Rational> div(const Rational &other) const;
  /// The nearest integer that is not above, not below the value.
  Rational floor() const;
  Rational ceil() const;
  /// Negative, zero or positive.
  int compare(const Rational &other) const;
  /// The nearest double.
  double toDouble() const {
    // Long doubles hold 64-bit numerators and denominators exactly, so that the quotient is rounded once.
    return static_cast<double>(static_cast<long double>(num) / static_cast<long double>(den));
  }
  /// `3`, `5/4`, `-1/2`.
  std::string str() const;
  /// Reads `12`, `2.50`, `1e-3`; `_` may stand between digits. Nothing if the text is no such number, or if 127 bits
  /// do not hold it.
  static std::optional<Rational> read(llvm::StringRef text);
};

/// Beyond the 63 bits of a size.
bool isTooLarge(const Rational &value);

} // namespace stage

#endif // STAGE_SYMBOLIC_RATIONAL_H
