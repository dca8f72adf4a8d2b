//===- ClassLowering.h - the nodes of a class of ranks ---------*- C++ -*-===//
//
// Problem: a class of ranks runs the units of one stage. Its trace is their nodes,
// with ids, dependencies and an order in which any greedy simulator finishes (L13):
//
//   * every COMP depends on the COMP before it, every send and collective on the send
//     or collective before it: two chains, both in program order;
//   * a recv depends on the last COMP of the unit two before its own, so that it is
//     posted while the unit before runs; no COMP depends on a send;
//   * beyond that, on the nodes that made what it uses.
//
// Ids are dense in program order, so that parents come before children and the lowest
// ready id is the next in the order.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_CODEGEN_CLASSLOWERING_H
#define STAGE_LIB_CODEGEN_CLASSLOWERING_H

#include "Groups.h"
#include "Layout.h"
#include "stage/CodeGen/Emit.h"
#include "stage/CodeGen/NodeWriter.h"

namespace stage {

/// What a slot of a class's image is filled with for each rank.
struct RankSlot {
  bool isGroup;
  unsigned kind = 0;     ///< Group: its kind.
  int64_t peerStage = 0; ///< Peer: the same coordinates on this stage.
};

/// A class: ranks of a stage that have the same values of the coordinates on which sizes depend.
struct RankClass {
  unsigned stage = 0;
  llvm::SmallVector<std::pair<AxisId, int64_t>, 2> coordinates;
  ClassImage image;
  std::vector<RankSlot> slots;
};

/// Axes whose coordinate occurs in a cost of a stage.
AxisSet findVaryingAxes(const Program &program, const StageProgram &stage);

/// Encodes the nodes of a class. False after errors.
bool lowerClass(const Program &program, const GroupTable &groups, const EmitOptions &options, RankClass &rankClass,
                DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_LIB_CODEGEN_CLASSLOWERING_H
