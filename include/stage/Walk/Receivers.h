//===- Receivers.h - who takes what a unit hands on -------------*- C++ -*-===//
//
// Problem: a rank has several chunks of the model, and the last op of one may make what the first op of the next one
// reads: no message is sent, and the tensor stays from the end of the unit that makes it to the begin of the unit that
// takes it.
//
//   units of a rank with chunks 0 and 1     F0.0  F1.0  F0.1  F1.1
//   F0.0 hands to F0.1                      0 -> 2, 1 -> 3
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_RECEIVERS_H
#define STAGE_WALK_RECEIVERS_H

#include "stage/IR/graph/Program.h"

namespace stage {

/// The positions of the units that units of a stage hand something, by theirs.
llvm::DenseMap<size_t, size_t> findReceivers(const Program &program, const StageProgram &stage);

} // namespace stage

#endif // STAGE_WALK_RECEIVERS_H
