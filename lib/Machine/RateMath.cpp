//===- RateMath.cpp - amounts over rates ----------------------------------===//
#include "RateMath.h"
#include "stage/Machine/Machine.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace stage;

Ticks RateMath::divide(int64_t amount, int64_t numerator, int64_t denominator, Rate rate) {
  if (!amount || !numerator)
    return 0; // whatever the rate is
  int64_t common = std::gcd(numerator, denominator);
  unsigned __int128 product = 0;
  if (__builtin_mul_overflow((unsigned __int128)amount * uint64_t(numerator / common),
                             (unsigned __int128)ticksPerSecond, &product))
    return maxTicks;
  unsigned __int128 divisor = (unsigned __int128)rate.perSecond * uint64_t(denominator / common);
  unsigned __int128 rest = product % divisor, ticks = product / divisor + (rest >= divisor - rest);
  return ticks > maxTicks ? maxTicks : Ticks(ticks);
}

Rate RateMath::reduce(Rate rate, const Rational &part) {
  unsigned __int128 reached = (unsigned __int128)rate.perSecond * uint64_t(part.num) / uint64_t(part.den);
  return std::max<uint64_t>(uint64_t(reached), rate.perSecond > 0);
}

Ticks stage::roundTicks(double ticks) { return ticks < double(maxTicks) ? Ticks(std::floor(ticks + 0.5)) : maxTicks; }

Ticks stage::multiply(Ticks time, const Rational &times) {
  __int128 product = times.num * time;
  return Ticks(std::min<__int128>((2 * product + times.den) / (2 * times.den), maxTicks));
}

uint64_t stage::getPerSecond(Rate rate) { return RateMath::getPerSecond(rate); }
