//===- RateMath.h - amounts over rates -------------------------*- C++ -*-===//
//
// The one place that divides an amount by a rate (stage/Symbolic/Rate.h). Other libraries cannot include it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_MACHINE_RATEMATH_H
#define STAGE_LIB_MACHINE_RATEMATH_H

#include "stage/Machine/Ticks.h"
#include "stage/Symbolic/Rate.h"
#include "stage/Symbolic/Rational.h"

namespace stage {

class RateMath {
public:
  /// So many bytes, or FLOPs, times a fraction, at a rate. Rounded to the nearest tick, half up.
  static Ticks divide(int64_t amount, int64_t numerator, int64_t denominator, Rate rate);
  static uint64_t getPerSecond(Rate rate) { return rate.perSecond; }
  /// In ticks that are not rounded. No amount takes no time, whatever the rate is.
  static double divide(double amount, Rate rate) {
    return amount ? amount / double(rate.perSecond) * double(ticksPerSecond) : 0;
  }
  /// The part of a rate that is reached, rounded down to a whole number per second.
  static Rate reduce(Rate rate, const Rational &part);
};

/// To the nearest tick, half up, and no longer than can be counted.
Ticks roundTicks(double ticks);

} // namespace stage

#endif // STAGE_LIB_MACHINE_RATEMATH_H
