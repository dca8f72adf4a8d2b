//===- Random.h - numbers by chance, the same on every machine -*- C++ -*-===//
#ifndef STAGE_UNITTESTS_DRIVER_RANDOM_H
#define STAGE_UNITTESTS_DRIVER_RANDOM_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace stage {

class Random {
public:
  /// Series of neighbouring seeds have nothing in common: each begins at a place of its own.
  explicit Random(uint64_t seed) : state(mix(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du)) {}

  unsigned below(unsigned n) { return next() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &pick(const std::vector<T> &from) { return from[below(from.size())]; }

private:
  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15u); }
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state;
};

/// Calls `f(word)` for every word of a line, and puts what it gives in its place.
template <typename Function> std::string replaceWords(llvm::StringRef line, Function f) {
  std::string text;
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && (llvm::isAlnum(line[end]) || line[end] == '_'))
      ++end;
    text += end > i ? f(line.slice(i, end)) : std::string(1, line[i]);
    i = end > i ? end : i + 1;
  }
  return text;
}

/// True if a line has the word, not as a part of another.
inline bool hasWord(llvm::StringRef line, llvm::StringRef word) {
  bool isFound = false;
  replaceWords(line, [&](llvm::StringRef part) {
    isFound |= part == word;
    return std::string();
  });
  return isFound;
}

} // namespace stage

#endif // STAGE_UNITTESTS_DRIVER_RANDOM_H
