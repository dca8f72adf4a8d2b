//===- Packing.h - several sequences in one dim ----------------*- C++ -*-===//
//
// Problem: a server computes some positions of many sequences at once. They stand one behind
// the other in one dim, and to most ops it is all the same of which sequence a position is:
// a product, a norm, a sum work position by position. Those that look at other positions
// must not look at other sequences'.
//
//   dim S from context - S packed;       dim context packed;
//   sum pairs.0 = 2*S*context - S^2 or 2*context;
//
//   linear [s over S, d, f]              position by position: any S does
//   attention [s over S, t over context] pairs of a row and a column, of which a mask says which count: as many as
//                                        units bind pairs.0 to, which is the sum over their sequences (SequenceSum)
//   scores [s over S, t over context]    without a mask: all pairs, also those that do not belong together
//   scan [t over S, state]               tokens of each sequence behind its own state: as many FLOPs as there are
//                                        tokens, and as many states as sequences
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PACKING_H
#define STAGE_IR_GRAPH_PACKING_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Of an op whose rows are packed, twice the pairs that its mask keeps of a sequence, as a graph sums them up: without
/// a symbol. Null sizes: they are not packed.
SequenceSum getTwiceMaskArea(const Graph &graph, const Op &op);
/// What a size is of a sequence of which a unit takes one position of `rows`.
Size ofOnePosition(const Graph &graph, Size ofSeveral, const Dim &rows);
/// Of these pairs those that a kernel computes of a unit that has a prompt. `tile` 0: those of sequences with several
/// rows. Else all of them, as often as if the rows of each sequence were whole tiles: those of 100 rows 128 / 100
/// times, those of one 64 times. Without a symbol.
SequenceSum ofPrompts(const Graph &graph, const SequenceSum &pairs, const Dim &rows, int64_t tile);
/// The sum of the graph that these are; null if it has none.
const SequenceSum *findSum(const Graph &graph, const SequenceSum &wanted);

/// Each sequence of a unit has one of its own of these: a state, or what is made in its place. Their types are of one.
bool isStateOfEach(const Value &value);
/// The op takes each sequence by itself: it pairs or adds up positions, but each of its tensors has positions of one
/// dim at most, or is a state, and its FLOPs are so many for each position. Then what it does of all sequences is what
/// it does of as many positions.
bool takesEachApart(const Op &op);

/// The op cuts positions into parts, of which one may have positions of two sequences.
bool cutsSequences(const Op &op);
/// It does that, or without a mask the op pairs, or adds up, positions of sequences that have nothing to do with each
/// other.
bool mixesSequences(const Op &op);
/// Rows or columns of the op's mask are packed and split over axes: ranks would have different pairs of each sequence.
bool splitsSequences(const Op &op);

} // namespace stage

#endif // STAGE_IR_GRAPH_PACKING_H
