//===- PathIndex.h - paths by the names in them ----------------*- C++ -*-===//
//
// Problem: a strategy may have as many rules as a model has values, and to try each on each is quadratic.
//
// A path is known by each of its names, counted from the front and from the back:
//
//   layers.l7.h          front 0 "layers", front 1 "l7", front 2 "h"; back 0 "h", back 1 "l7", back 2 "layers"
//
// A pattern whose segment says one of these, before its first `**` or behind its last, means paths under that name
// only:
//
//   **.l7.h              back 0 "h": one in each layer; back 1 "l7": the values of one layer
//
// The names with the fewest paths are taken.
//
// Limits: a pattern of stars only, as `**` or `*.x*`, is tried on all.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PATHINDEX_H
#define STAGE_IR_GRAPH_PATHINDEX_H

#include "stage/IR/graph/PathPattern.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace stage {

class PathIndex {
public:
  /// A path of the thing with this number. A thing may have several paths; numbers never fall.
  void add(unsigned number, llvm::StringRef path);
  /// The numbers, rising, of things that a pattern may match: the others it does not.
  std::vector<unsigned> find(const PathPattern &pattern) const;

private:
  using Names = llvm::StringMap<llvm::SmallVector<unsigned, 6>>;
  std::vector<Names> fromFront, fromBack; ///< By how many names stand before, or behind.
  unsigned size = 0;
};

} // namespace stage

#endif // STAGE_IR_GRAPH_PATHINDEX_H
