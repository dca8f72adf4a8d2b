//===- GroupPlace.cpp - where a group lies on a network -------------------===//
#include "stage/Machine/GroupPlace.h"
#include <algorithm>

using namespace stage;

GroupPlace::GroupPlace(llvm::ArrayRef<int64_t> ranks, llvm::ArrayRef<int64_t> blockSizes)
    : members(int64_t(ranks.size())) {
  for (int64_t size : blockSizes) {
    if (ranks.empty() || ranks.front() / size == ranks.back() / size)
      return;
    Share share{0, members};
    for (size_t begin = 0, end; begin < ranks.size(); begin = end) {
      for (end = begin; end < ranks.size() && ranks[end] / size == ranks[begin] / size;)
        ++end;
      ++share.blocks;
      share.least = std::min(share.least, int64_t(end - begin));
    }
    inside.push_back(share);
  }
}
