//===- Limits.h - what traces can hold -------------------------*- C++ -*-===//
#ifndef STAGE_SUPPORT_LIMITS_H
#define STAGE_SUPPORT_LIMITS_H

#include <cstdint>

namespace stage {

/// Ranks of a mesh, of all parts together: simulators read a rank as an int32.
inline constexpr int64_t maxRanks = int64_t(1) << 31;

/// Tags of messages are at most this: simulators read no larger ones.
inline constexpr int64_t maxTag = 500'000'000;

} // namespace stage

#endif // STAGE_SUPPORT_LIMITS_H
