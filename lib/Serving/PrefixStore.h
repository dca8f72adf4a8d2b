//===- PrefixStore.h - beginnings of prompts that are kept -----*- C++ -*-===//
//
// A store of blocks of prompts beside the cache, on the host, say: each block stands for
// its tokens and all before them. Of a limited store the blocks that were not used for
// longest are forgotten; of a prompt the last before the first, as those without their
// beginning are worth nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SERVING_PREFIXSTORE_H
#define STAGE_LIB_SERVING_PREFIXSTORE_H

#include "llvm/ADT/ArrayRef.h"
#include <list>
#include <unordered_map>

namespace stage::serving {

class PrefixStore {
public:
  /// Blocks that are kept; negative: no limit.
  explicit PrefixStore(int64_t capacity) : capacity(capacity) {}

  /// How many of these blocks, from the first on, are there.
  size_t match(llvm::ArrayRef<int64_t> blocks) const;
  /// These blocks, in the order of their prompt, are used now, and there from now on. How many were not there.
  size_t use(llvm::ArrayRef<int64_t> blocks);

private:
  int64_t capacity;
  std::list<int64_t> byUse; ///< The last used first.
  std::unordered_map<int64_t, std::list<int64_t>::iterator> places;
};

} // namespace stage::serving

#endif // STAGE_LIB_SERVING_PREFIXSTORE_H
