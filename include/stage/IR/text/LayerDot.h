//===- LayerDot.h - the ops of a layer for graphviz ------------*- C++ -*-===//
#ifndef STAGE_IR_TEXT_LAYERDOT_H
#define STAGE_IR_TEXT_LAYERDOT_H

#include "stage/IR/graph/LayerOps.h"

namespace stage {

/// Prints the phases of a layer side by side: a box for each op, an ellipse for each parameter, arrows along values,
/// and dashed ones for values that a phase keeps for a later one.
void printDot(llvm::raw_ostream &os, const Graph &graph, const LayerOps &layer);

} // namespace stage

#endif // STAGE_IR_TEXT_LAYERDOT_H
