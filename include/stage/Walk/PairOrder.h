//===- PairOrder.h - two units that run interleaved -------------*- C++ -*-===//
//
// Problem: while experts wait for their tokens, a rank idles. A schedule may pair a backward with a forward of another
// microbatch (`B0|F1`): the exchange of B0 then hides behind the compute of F1, and the other way round. In which order
// do the tasks of both run? Traces, times and memory must agree.
//
//   B0     combine' a   experts' b   dispatch' c   attention' d      a, c: exchanges of B0
//   F1     attention e  dispatch f   experts g     combine h         f, h: exchanges of F1
//
//   pair   a | e f | b c | g h | d                  e is computed while a moves, b while f, g while c, d while h
//
// Rule: the rank computes one of the units until a compute task of it would wait for a communication that this unit has
// begun since its turn; then it is the other one's turn. The first unit of the pair begins. When one of them has
// ended the other one runs on. Neither compute tasks beside the main stream give a turn away, nor communication that a
// strategy exposes (stage/IR/graph/ExposedCommunication.h). Messages to other stages leave at the end of the pair,
// first those of the first unit. Earlier messages would delay later ones of their stream, because a message waits for
// its receiver.
//
// The rule knows no times, so that the traces of a program are the same on every machine (law L15). Of each unit it
// keeps the order, and it adds no data: the two units use nothing of each other.
//
// A unit is a list of nodes here, counted from 0 as in its layout (stage/Tasks/TaskLayout.h) and in a simulation that
// folds no iterations (stage/Memory/UnitSimulator.h). Both ask this order where a node is in the pair.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_WALK_PAIRORDER_H
#define STAGE_WALK_PAIRORDER_H

#include "stage/IR/graph/Program.h"
#include <array>

namespace stage {

class PairOrder {
public:
  /// Of two units with these items.
  PairOrder(const Graph &graph, llvm::ArrayRef<ProgramItem> first, llvm::ArrayRef<ProgramItem> second);

  /// Nodes of one unit, which is 0 or 1, that follow each other.
  struct Turn {
    unsigned unit;
    uint64_t begin, end; ///< Positions in the unit.
    uint64_t place;      ///< In the pair, of the first of them.
  };
  /// In their order, none of them empty.
  llvm::ArrayRef<Turn> getTurns() const { return turns; }
  uint64_t getNumNodes() const {
    return turns.empty() ? 0 : turns.back().place + turns.back().end - turns.back().begin;
  }

  struct Node {
    unsigned unit;
    uint64_t position;
  };
  /// The place of a node of a unit in the pair; and back.
  uint64_t getPlace(unsigned unit, uint64_t position) const;
  Node find(uint64_t place) const;

private:
  void add(unsigned unit, uint64_t begin, uint64_t end);

  std::vector<Turn> turns;
  std::array<std::vector<unsigned>, 2> turnsOf; ///< Of each unit.
};

} // namespace stage

#endif // STAGE_WALK_PAIRORDER_H
