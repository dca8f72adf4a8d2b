//===- CheckSizes.h - every tensor has a size ------------------*- C++ -*-===//
//
// Passes compare bytes: where an axis stays, which form of a value is kept, how data
// are moved. A size that has no value under the job's binding (an unbound symbol, a
// fraction, more than a machine counts) must end in a message there, not count as none.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_CHECKSIZES_H
#define STAGE_LIB_TRANSFORMS_CHECKSIZES_H

#include "stage/IR/Graph.h"
#include "stage/Support/Diagnostics.h"

namespace stage {

/// Every extent of every value is a count, and the bytes of every value can be computed. False after a report of each
/// value for which this does not hold. Linear in the values.
bool checkSizes(Graph &graph, DiagnosticEngine &diags);

/// The bytes of a value that a rank holds in a sharding, a fraction rounded down. Only where checkSizes() holds.
__int128 getCheckedBytes(const Graph &graph, const TensorType &type, const Sharding &sharding);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_CHECKSIZES_H
