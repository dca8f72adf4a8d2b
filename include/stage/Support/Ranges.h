//===- Ranges.h - lists of ranks as ranges ---------------------*- C++ -*-===//
#ifndef STAGE_SUPPORT_RANGES_H
#define STAGE_SUPPORT_RANGES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace stage {

/// Reads `0,8-15`, numbers and inclusive ranges, and appends them. False if the text is no such list.
bool parseRanges(llvm::StringRef text, std::vector<std::pair<int64_t, int64_t>> &result);

/// Ranges of ranks, the first of many: `0-3, 7`.
std::string formatRanges(llvm::ArrayRef<std::pair<uint32_t, uint32_t>> ranges);
/// Ranks as ascending ranges: `0-3, 7`.
std::string formatRanks(llvm::ArrayRef<uint32_t> ascendingRanks);

} // namespace stage

#endif // STAGE_SUPPORT_RANGES_H
