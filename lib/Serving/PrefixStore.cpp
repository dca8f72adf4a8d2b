//===- PrefixStore.cpp - beginnings of prompts that are kept --------------===//
#include "PrefixStore.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;
using namespace stage::serving;

size_t PrefixStore::match(llvm::ArrayRef<int64_t> blocks) const {
  size_t count = 0;
  while (count < blocks.size() && places.count(blocks[count]))
    ++count;
  return count;
}

size_t PrefixStore::use(llvm::ArrayRef<int64_t> blocks) {
  size_t numNew = 0;
  for (int64_t block : llvm::reverse(blocks)) {
    auto [place, isNew] = places.try_emplace(block);
    numNew += isNew;
    if (!isNew)
      byUse.erase(place->second);
    place->second = byUse.insert(byUse.begin(), block);
  }
  while (capacity >= 0 && int64_t(byUse.size()) > capacity) {
    places.erase(byUse.back());
    byUse.pop_back();
  }
  return numNew;
}
