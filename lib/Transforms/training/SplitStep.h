//===- SplitStep.h - what a step does before its updates -------*- C++ -*-===//
//
//   step {                                   reduce {
//     repeat layers reverse {                  repeat layers reverse {
//       %g = reduce_scatter(%dw) over dp         %g = reduce_scatter(%dw) over dp
//       %n = update(%w, %g)                    }
//       write(%w, all_gather(%n) over dp)    }
//     }                                 ->   step {
//   }                                          repeat layers reverse {
//                                                %n = update(%w, %g)
//                                                write(%w, all_gather(%n) over dp)
//                                              }
//                                            }
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_SPLITSTEP_H
#define STAGE_LIB_TRANSFORMS_SPLITSTEP_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Moves all that no update makes from the step to a phase of its own, which is made; a repeat of the step becomes one
/// in each of the two, unless nothing of it moves. Calls `onUpdate` for each update with the block of the new phase, of
/// which all that it takes stands there by then.
void splitStep(Graph &graph, Block &step, llvm::function_ref<void(Op &update, Block &reduce)> onUpdate);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_SPLITSTEP_H
