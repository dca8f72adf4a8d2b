//===- Ticks.h - time, in whole picoseconds --------------------*- C++ -*-===//
#ifndef STAGE_MACHINE_TICKS_H
#define STAGE_MACHINE_TICKS_H

#include <cstdint>

namespace stage {

/// Picoseconds. Seconds exist in printers only: whole numbers are the same on every machine that computes them.
using Ticks = int64_t;

inline constexpr Ticks ticksPerSecond = 1'000'000'000'000;
/// The longest time that is counted, 53 days. A longer duration is cut to it; a longer step is an error.
inline constexpr Ticks maxTicks = Ticks(1) << 62;

} // namespace stage

#endif // STAGE_MACHINE_TICKS_H
