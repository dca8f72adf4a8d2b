//===- PathIndex.cpp - paths by the names in them -------------------------===//
#include "stage/IR/graph/PathIndex.h"
#include "stage/IR/graph/PathPattern.h"
#include <numeric>

using namespace stage;

void PathIndex::add(unsigned number, llvm::StringRef path) {
  auto [outer, last] = path.rsplit('.');
  PathNames parts = splitPath(outer);
  if (!last.empty())
    parts.push_back(last); // perhaps the number of a variant
  size_t levels = std::max(fromFront.size(), parts.size());
  fromFront.resize(levels);
  fromBack.resize(levels);
  for (size_t i = 0; i < parts.size(); ++i) {
    fromFront[i][parts[i]].push_back(number);
    fromBack[parts.size() - 1 - i][parts[i]].push_back(number);
  }
  size = number + 1;
}

std::vector<unsigned> PathIndex::find(const PathPattern &pattern) const {
  llvm::SmallVector<const llvm::SmallVectorImpl<unsigned> *, 2> best;
  size_t fewest = size;
  bool isNarrowed = false;
  // What is in these names at this level, if it is the least so far.
  auto consider = [&](const std::vector<Names> &levels, unsigned level, llvm::ArrayRef<std::string> names) {
    llvm::SmallVector<const llvm::SmallVectorImpl<unsigned> *, 2> lists;
    size_t count = 0;
    if (level >= levels.size())
      names = {};
    for (const std::string &name : names) {
      auto found = levels[level].find(name);
      if (found == levels[level].end())
        continue;
      lists.push_back(&found->second);
      count += found->second.size();
    }
    if (count >= fewest)
      return;
    fewest = count;
    best = std::move(lists);
    isNarrowed = true;
  };
  unsigned numSegments = pattern.getNumSegments();
  for (unsigned i = 0; i < numSegments && !pattern.isAnyDepth(i); ++i)
    if (!pattern.hasStar(i))
      consider(fromFront, i, pattern.getAlternatives(i));
  for (unsigned i = 0; i < numSegments && !pattern.isAnyDepth(numSegments - 1 - i); ++i)
    if (!pattern.hasStar(numSegments - 1 - i))
      consider(fromBack, i, pattern.getAlternatives(numSegments - 1 - i));

  std::vector<unsigned> numbers;
  if (!isNarrowed) {
    numbers.resize(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  for (const llvm::SmallVectorImpl<unsigned> *list : best)
    numbers.insert(numbers.end(), list->begin(), list->end());
  llvm::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}
