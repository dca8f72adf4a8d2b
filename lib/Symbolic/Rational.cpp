//===- Rational.cpp - checked 128-bit rationals ---------------------------===//
#include "SizeNode.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace stage;

using Wide = __int128;
using UnsignedWide = unsigned __int128;

static UnsignedWide magnitude(Wide value) { return value < 0 ? -UnsignedWide(value) : UnsignedWide(value); }

UnsignedWide stage::greatestCommonDivisor(UnsignedWide a, UnsignedWide b) {
  while (b) {
    // 128-bit division is a library call; nearly every value fits 64 bits.
    if (!(a >> 64) && !(b >> 64))
      return std::gcd(uint64_t(a), uint64_t(b));
    UnsignedWide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

std::optional<Rational> Rational::make(Wide num, Wide den) {
  if (den == 0)
    return std::nullopt;
  if (den < 0 && (__builtin_sub_overflow(Wide(0), num, &num) || __builtin_sub_overflow(Wide(0), den, &den)))
    return std::nullopt;
  if (den == 1)
    return Rational{num, 1};
  UnsignedWide common = greatestCommonDivisor(magnitude(num), UnsignedWide(den));
  return Rational{num / Wide(common), den / Wide(common)};
}

std::optional<Rational> Rational::add(const Rational &other) const {
  Wide sum;
  if (den == 1 && other.den == 1) {
    if (__builtin_add_overflow(num, other.num, &sum))
      return std::nullopt;
    return Rational{sum, 1};
  }
  // Over the least common denominator, so that it overflows only where the sum nearly does.
  Wide common = Wide(greatestCommonDivisor(UnsignedWide(den), UnsignedWide(other.den)));
  Wide left, right, denominator;
  if (__builtin_mul_overflow(num, other.den / common, &left) ||
      __builtin_mul_overflow(other.num, den / common, &right) || __builtin_add_overflow(left, right, &sum) ||
      __builtin_mul_overflow(den, other.den / common, &denominator))
    return std::nullopt;
  return make(sum, denominator);
}

std::optional<Rational> Rational::sub(const Rational &other) const {
  Rational negated = other;
  if (__builtin_sub_overflow(Wide(0), other.num, &negated.num))
    return std::nullopt;
  return add(negated);
}

std::optional<Rational> Rational::mul(const Rational &other) const {
  Rational result;
  if (den == 1 && other.den == 1) {
    if (__builtin_mul_overflow(num, other.num, &result.num))
      return std::nullopt;
    return result;
  }
  if (num == 0 || other.num == 0)
    return Rational{};
  // Cancelling across first leaves lowest terms and the smallest products.
  Wide a = Wide(greatestCommonDivisor(magnitude(num), UnsignedWide(other.den)));
  Wide b = Wide(greatestCommonDivisor(magnitude(other.num), UnsignedWide(den)));
  if (__builtin_mul_overflow(num / a, other.num / b, &result.num) ||
      __builtin_mul_overflow(den / b, other.den / a, &result.den))
    return std::nullopt;
  return result;
}

std::optional<Rational> Rational::div(const Rational &other) const {
  std::optional<Rational> inverse = make(other.den, other.num);
  return inverse ? mul(*inverse) : std::nullopt;
}

Rational Rational::floor() const { return {num / den - (num % den < 0), 1}; }
Rational Rational::ceil() const { return {num / den + (num % den > 0), 1}; }

int Rational::compare(const Rational &other) const {
  // Cross products could overflow. Integral parts decide, or else the inverses of what is left over them, the other
  // way round: Euclid's algorithm on both at once.
  Rational a = *this, b = other;
  for (int sign = 1;; sign = -sign) {
    Wide floorA = a.floor().num, floorB = b.floor().num;
    if (floorA != floorB)
      return floorA < floorB ? -sign : sign;
    Wide restA = a.num % a.den, restB = b.num % b.den;
    restA += restA < 0 ? a.den : 0;
    restB += restB < 0 ? b.den : 0;
    if (restA == 0 || restB == 0)
      return restA == restB ? 0 : (restA == 0 ? -sign : sign);
    a = {a.den, restA};
    b = {b.den, restB};
  }
}

static std::string decimal(Wide value) {
  std::string digits;
  UnsignedWide rest = magnitude(value);
  do {
    digits.insert(digits.begin(), char('0' + int(rest % 10)));
    rest /= 10;
  } while (rest);
  if (value < 0)
    digits.insert(digits.begin(), '-');
  return digits;
}

static bool multiply(Wide &value, Wide by) { return !__builtin_mul_overflow(value, by, &value); }

std::optional<Rational> Rational::read(llvm::StringRef text) {
  auto [mantissa, exponentText] = text.split(text.contains('e') ? 'e' : 'E');
  bool hasExponent = mantissa.size() < text.size();
  int64_t exponent = 0;
  exponentText.consume_front("+");
  if (mantissa.empty() || (hasExponent && exponentText.getAsInteger(10, exponent)))
    return std::nullopt;
  exponent = std::clamp<int64_t>(exponent, -10'000, 10'000); // far beyond what fits
  Rational value;
  bool isFraction = false;
  for (char c : mantissa) {
    if (c == '.' && !isFraction)
      isFraction = true;
    else if (llvm::isDigit(c)) {
      exponent -= isFraction;
      if (!multiply(value.num, 10) || __builtin_add_overflow(value.num, c - '0', &value.num))
        return std::nullopt;
    } else if (c != '_')
      return std::nullopt;
  }
  // The last zeros of a fraction, which could make its denominator too large.
  for (; exponent < 0 && value.num % 10 == 0 && value.num != 0; ++exponent)
    value.num /= 10;
  for (; exponent > 0 && value.num != 0; --exponent)
    if (!multiply(value.num, 10))
      return std::nullopt;
  for (; exponent < 0 && value.num != 0; ++exponent)
    if (!multiply(value.den, 10))
      return std::nullopt;
  return make(value.num, value.den);
}

std::string Rational::str() const { return den == 1 ? decimal(num) : decimal(num) + "/" + decimal(den); }

bool stage::isTooLarge(const Rational &value) {
  constexpr __int128 limit = std::numeric_limits<int64_t>::max();
  return value.floor().num > limit || value.ceil().num < -limit;
}
