//===- Identity.h - ops whose result is their operand ----------*- C++ -*-===//
//
// Problem: some ops compute nothing. A program gives a value a second name that has a
// demand of its own, and an operator may have nothing left to do once its parameters are
// known:
//
//   let z: [B, S@tp, D] = y;                        z[b, s, d] = y[b, s, d], elsewhere
//   op dropout(x: [...], rate) -> [...] = x * random(1 - rate)        at a rate of 0
//
// What there is of them is a demand for a sharding, no work: neither FLOPs nor bytes nor
// a node of a trace, and the gradient of the result is that of the operand.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_IDENTITY_H
#define STAGE_IR_GRAPH_IDENTITY_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// The operand that the only visible result of an operator is, element by element, whatever their element types;
/// nothing if a formula says otherwise or is missing.
std::optional<unsigned> findIdentity(const OpDef &def);

/// The operand of an op that routes, whose element is what a slot has of a token: it puts that there, or takes it out,
/// and nothing else. Nothing if the formula says more, and for gradients.
std::optional<unsigned> findInSlots(const OpDef &def);

/// True for a compute op whose result is its only operand, of the same element type and kept alike, and which declares
/// no costs and saves nothing: only its place in the graph is left of it.
bool computesNothing(const Op &op);

/// True for a compute op whose result is its only operand in another element type, or quantized otherwise. It may be
/// kept flat.
bool isCast(const Op &op);

/// The gradient buffer in which a cast writes what has been reduced in another type, of whose elements that was made;
/// null for any other op.
const Value *getBufferWrittenBack(const Op &op);

} // namespace stage

#endif // STAGE_IR_GRAPH_IDENTITY_H
