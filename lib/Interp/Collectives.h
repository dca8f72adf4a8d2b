//===- Collectives.h - what a group's members put in and get out -*- C++ -*-===//
#ifndef STAGE_LIB_INTERP_COLLECTIVES_H
#define STAGE_LIB_INTERP_COLLECTIVES_H

#include "stage/Interp/Tensor.h"

namespace stage::interp {

/// The ranks that run a collective with `rank`, itself among them, in the order of their coordinates on the op's axes.
std::vector<int64_t> getGroup(const Graph &graph, const Op &op, int64_t rank);

/// What each member gets for an operand of a collective, from what each put in, as the machine would do it: pieces are
/// concatenated in the order of the group, and cut in that order. Nothing if the members' tensors do not fit.
std::optional<std::vector<Tensor>> runCollective(const Graph &graph, const Op &op, unsigned operand,
                                                 llvm::ArrayRef<TensorRef> inputs);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_COLLECTIVES_H
