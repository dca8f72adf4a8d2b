//===- Timestamp.h - dates and times in nanoseconds ------------*- C++ -*-===//
#ifndef STAGE_LIB_SERVING_TIMESTAMP_H
#define STAGE_LIB_SERVING_TIMESTAMP_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace stage::serving {

/// `2023-11-16 18:17:03.9799600` in nanoseconds since 1970. `T` may stand for the blank, the fraction may be missing
/// or have up to nine digits, and `Z` or `+00:00` may follow. Nothing if the text is no such date.
std::optional<int64_t> parseTimestamp(llvm::StringRef text);

/// Nanoseconds as exact seconds: `0.0125`.
std::string formatSeconds(int64_t nanoseconds);

} // namespace stage::serving

#endif // STAGE_LIB_SERVING_TIMESTAMP_H
