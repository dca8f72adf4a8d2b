//===- CheckSizes.h - tensors have sizes, repeats counts --------*- C++ -*-===//
//
// Passes compare bytes: where an axis stays, which form of a value is kept, how data
// are moved; proofs run iterations. A size that has no value under the job's binding
// (an unbound symbol, a fraction, more than a machine counts) must end in a message
// there, not count as none.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRANSFORMS_SHARDING_CHECKSIZES_H
#define STAGE_TRANSFORMS_SHARDING_CHECKSIZES_H

#include "stage/IR/graph/Graph.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Every extent of every value and op and the number of iterations of every repeat is a count, and the bytes of every
/// value can be computed. False after a report of each value and repeat for which this does not hold. Linear in the
/// values.
bool checkSizes(Graph &graph, DiagnosticEngine &diags);

// Only where checkSizes() holds:
/// The bytes of a value that a rank holds in a sharding, of ranks that differ the one with most; a fraction rounded
/// down.
__int128 getCheckedBytes(const Graph &graph, const TensorType &type, const Sharding &sharding);
/// An extent or a number of iterations.
int64_t getCheckedCount(const Graph &graph, Size size);

} // namespace stage

#endif // STAGE_TRANSFORMS_SHARDING_CHECKSIZES_H
