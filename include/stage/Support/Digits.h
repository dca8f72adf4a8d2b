//===- Digits.h - how long numbers are when they are written ---*- C++ -*-===//
#ifndef STAGE_SUPPORT_DIGITS_H
#define STAGE_SUPPORT_DIGITS_H

#include <bit>
#include <cstddef>
#include <cstdint>

namespace stage {

/// Bytes of a varint: seven bits in each.
inline size_t getVarintSize(uint64_t value) { return (std::bit_width(value | 1) * 9 + 64) / 64; }

/// Decimal digits.
inline size_t getDecimalSize(uint64_t value) {
  size_t digits = 1;
  for (; value >= 10; value /= 10)
    ++digits;
  return digits;
}

} // namespace stage

#endif // STAGE_SUPPORT_DIGITS_H
