//===- MessagePieces.h - messages that ranks of a stage share --*- C++ -*-===//
//
// Problem: without sequence parallelism every tensor rank holds the activation between two
// layers whole. If each of them sends it to its peer in the next stage, the same bytes cross
// the slow network tp times. Megatron-LM 2 and 3 therefore scatter and gather
// (`--scatter-gather-tensors-in-pipeline`, arXiv 2104.04473, section 4.1):
//
//   stage 0   %x.0 = slice(%x) over tp; send %x.0           each rank 1/tp of the elements
//   stage 1   recv %x.1; %x = all_gather(%x.1) over tp      on the fast network of a node
//
// Representation: pieces are flat storage of the value over these axes, so that they divide
// its elements and not one of its dims. The slice is a view, and the piece that arrives is an
// argument of a message block (Graph.h). All stages that send or receive one value share its
// slice, its piece and its gather, so that their units are alike.
//
// Limits: a value that is split or partial over one of the axes, that is quantized, that is
// dealt out by a table, or whose elements the ranks do not divide evenly in all units, goes
// whole; so do messages to other parts of a workload, and tokens.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_MESSAGEPIECES_H
#define STAGE_LIB_TRANSFORMS_MESSAGEPIECES_H

#include "stage/IR/graph/Program.h"

namespace stage {

class DiagnosticEngine;

class MessagePieces {
public:
  explicit MessagePieces(Graph &graph);

  /// Some messages may go in pieces.
  bool areWanted() const { return !axes.empty(); }
  /// Appends a message, and, if it is sent, the slices in front of it, or, if it is received, the gathers behind it.
  /// `wholes`: of what is sent, the values as the unit knows them when it sends. `isPassedThrough`: the unit runs no
  /// iteration of the repeat that carries the message, and only hands it on.
  void append(std::vector<ProgramItem> &items, ProgramItem message, PhaseKind kind, llvm::ArrayRef<Value *> wholes,
              bool isPassedThrough);
  /// Warns if all messages go whole though they should not.
  void warnOfNone(DiagnosticEngine &diags) const;

private:
  /// What a value is in units of a kind, each made when it is first asked for.
  struct Parts {
    Value *piece = nullptr; ///< As it arrives.
    Op *gather = nullptr, *slice = nullptr;
  };
  std::string findObstacle(const Value &value);
  bool goesInPieces(const Value &value);
  Parts &getParts(Value *value, PhaseKind kind) { return parts[{value, unsigned(kind)}]; }
  Value *getPiece(Value *value, PhaseKind kind);
  Op *getGather(Value *value, PhaseKind kind);
  Op *getSlice(Value *whole, const Value &sent, PhaseKind kind);
  Op *makeOp(OpKind what, Value *operand, const Value &like, const AxisList &flat, PhaseKind kind);
  Block &getBlock(PhaseKind kind);

  Graph &graph;
  AxisList axes;
  llvm::DenseMap<std::pair<const Value *, unsigned>, Parts> parts;
  llvm::DenseMap<const Value *, bool> known; ///< Whether a value goes in pieces.
  std::array<Block *, numPhaseKinds> blocks = {};
  unsigned numCut = 0;
  std::string obstacle; ///< Of the first value that goes whole.
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_MESSAGEPIECES_H
