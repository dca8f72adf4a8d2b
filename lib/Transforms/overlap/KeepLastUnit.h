//===- KeepLastUnit.h - what backward need not gather again ----*- C++ -*-===//
//
// Problem: backward begins with the unit that forward has ended with, whose parameters have just been released: they
// would be gathered again at once, with nothing to hide it. So frameworks leave them there (`reshard_after_forward` of
// PyTorch's `fully_shard` is false for the root module unless it is said; torchtitan says so of the norm and the head):
//
//   partition parameters over dp by unit layers[*] { keep = last; }
//
//   forward   repeat layers [6] cases (0 * 5, 1)              the same
//               ... or  %v.1 = all_gather(%v)
//                       ...
//                       release(%v.1)
//   backward  repeat layers [6] reverse cases (0 * 5, 1)
//               ... or  %v.2 = all_gather(%v)          ->       ... or  ... %v.1
//                       ... %v.2                                        release(%v.1)
//                       release(%v.2)
//
// Algorithm: the last unit is what forward releases last, at the top or in the last iteration of a repeat. Where it
// stands, all later phases of a microbatch take what forward has gathered, and release it as they did.
//
// Limits: the iteration must be a case of its own (lib/IRGen/SplitLastUnit.cpp makes one). A parameter that several
// virtual stages gather for themselves is gathered again.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_KEEPLASTUNIT_H
#define STAGE_LIB_TRANSFORMS_KEEPLASTUNIT_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/StringMap.h"

namespace stage {

/// All that is gathered and released by unit has been. `units`: the unit of each parameter, by its path.
void keepLastUnit(Graph &graph, const llvm::StringMap<std::string> &units);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_KEEPLASTUNIT_H
