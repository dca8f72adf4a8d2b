//===- Ranges.cpp - lists of ranks as ranges ------------------------------===//
#include "stage/Support/Ranges.h"
#include "llvm/ADT/SmallVector.h"

using namespace stage;

bool stage::parseRanges(llvm::StringRef text, std::vector<std::pair<int64_t, int64_t>> &result) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [first, last] = part.split('-');
    int64_t a, b;
    if (first.getAsInteger(10, a) || a < 0)
      return false;
    b = a;
    if (part.contains('-') && (last.getAsInteger(10, b) || b < a))
      return false;
    result.emplace_back(a, b);
  }
  return true;
}

std::string stage::formatRanges(llvm::ArrayRef<std::pair<uint32_t, uint32_t>> ranges) {
  std::string text;
  constexpr size_t maxShown = 200;
  for (auto [first, last] : ranges) {
    if (text.size() > maxShown)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last > first)
      text += "-" + std::to_string(last);
  }
  return text;
}

std::string stage::formatRanks(llvm::ArrayRef<uint32_t> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i)
      text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}
