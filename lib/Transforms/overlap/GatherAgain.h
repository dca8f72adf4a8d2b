//===- GatherAgain.h - what backward gathers though nothing reads it -------===//
//
// Problem: frameworks that cut parameters gather all of a module's when its backward begins, by hooks of modules
// (PyTorch's FSDP, DeepSpeed's ZeRO-3), and do not look whether its gradients read them: those of embeddings and biases
// do not.
//
//   partition parameters over dp { again = all; }
//
//   forward   %e.1 = all_gather(%e) over dp flat         the same
//             %x = lookup(%ids, %e.1)
//   backward  %de = lookup.grad(%ids, %dx)          ->   %e.2 = all_gather(%e) over dp flat
//                                                        %de = lookup.grad(%ids, %dx) after %e.2
//                                                        release(%e.2)
//
// Algorithm: of a parameter that forward gathers and backward does not, the gather of forward stands once more in front
// of the first op that makes a contribution to its gradient, on each virtual stage that makes one. Of a unit it becomes
// part of the unit's gather as all others (BucketUnits); what moves by itself is released behind the op. The op waits
// for it, as a hook does.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_GATHERAGAIN_H
#define STAGE_LIB_TRANSFORMS_GATHERAGAIN_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// The op that makes a contribution to a gradient, before what reduces it; null if none does.
Op *findMaker(const Op &accumulate);

/// All that is read has been gathered, parameter by parameter.
void gatherAllAgain(Graph &graph, const Rule &parameters);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_GATHERAGAIN_H
