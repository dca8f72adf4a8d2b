//===- Rate.h - so much per second -----------------------------*- C++ -*-===//
//
// Problem: an amount that is divided by a rate is a time, and only lib/Machine may say what takes how long. A number
// can be divided anywhere.
//
//   Rate memory = 3'350'000'000'000;     bytes per second
//   bytes / memory                       does not compile, as memory has no number that others see
//
// Rule: a rate is made of a number, compared, and handed on. Its number is seen by RateMath alone, whose header lies
// in lib/Machine, where no other library can include it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_RATE_H
#define STAGE_SYMBOLIC_RATE_H

#include <cstdint>

namespace stage {

/// Bytes or FLOPs per second. 0: not said.
class Rate {
public:
  constexpr Rate(uint64_t perSecond = 0) : perSecond(perSecond) {}
  constexpr explicit operator bool() const { return perSecond != 0; }
  bool operator==(const Rate &other) const = default;

private:
  friend class RateMath; // lib/Machine/RateMath.h
  uint64_t perSecond;
};

} // namespace stage

#endif // STAGE_SYMBOLIC_RATE_H
