//===- TimeText.h - times as people and programs read them -----*- C++ -*-===//
#ifndef STAGE_MACHINE_TIMETEXT_H
#define STAGE_MACHINE_TIMETEXT_H

#include "stage/Machine/Ticks.h"
#include <string>

namespace stage {

/// Microseconds, exactly: `12.5` for 12,500,000 ticks.
std::string toMicros(Ticks ticks);

/// A unit in which people say times.
struct TimeUnit {
  const char *name; ///< `ms`.
  Ticks ticks;
  /// `1.25 ms`, rounded to so many decimals, at most 12.
  std::string format(Ticks time, unsigned decimals, bool keepsZeros = false) const;
};
/// The largest unit of which a time has one or more: s, ms, us, ns or ps.
const TimeUnit &findTimeUnit(Ticks time);
/// In that unit, with three decimals at most: `5.312 s`, `20 ms`.
std::string formatTime(Ticks time);

} // namespace stage

#endif // STAGE_MACHINE_TIMETEXT_H
