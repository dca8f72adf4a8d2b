//===- Layout.h - where each op's node is in a trace -----------*- C++ -*-===//
//
// A unit's template lays its nodes out once: top-level ops have a position in the
// unit, ops of a repeat one in the iteration. The id of any node is then arithmetic:
//
//   id = first id of the unit + start of the segment + iteration run * nodes per iteration + position
//
// and so is the id of the node that produced any value: in this unit, in the previous
// iteration of the loop, in the partner unit (forward of the same microbatch) or, for
// the step, in the last unit that added to a gradient.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_CODEGEN_LAYOUT_H
#define STAGE_LIB_CODEGEN_LAYOUT_H

#include "stage/IR/Program.h"

namespace stage {

/// How an op appears in a trace.
enum class NodeClass : uint8_t {
  None,      ///< no node: its users depend on what it depends on
  Compute,
  Collective,
};
/// Decided for the whole program: an op that moves no bytes on any rank has no node.
NodeClass classifyNode(const Graph &graph, const Op &op);

/// A run of nodes of a template: one item of the program.
struct Segment {
  const ProgramItem *item;
  unsigned start = 0;        ///< Of its first node in the unit.
  unsigned perIteration = 0; ///< Loop: nodes of an iteration; otherwise all of its nodes.
  int64_t iterations = 1;
  std::vector<Op *> ops; ///< Those with nodes, in order.
};

/// The nodes of one template.
class Layout {
public:
  /// `index` numbers the layouts of a stage.
  Layout(const Graph &graph, llvm::ArrayRef<ProgramItem> items);

  llvm::ArrayRef<Segment> getSegments() const { return segments; }
  unsigned getNumNodes() const { return numNodes; }
  /// The segment that runs a loop; null if this template does not.
  const Segment *findLoop(unsigned loop) const;
  /// Position of an op's node in its segment; nothing if it has none here.
  std::optional<std::pair<const Segment *, unsigned>> find(const Op *op) const;
  /// True if the template runs this op (for an op in a loop: at this iteration).
  bool runs(const Op *op, int64_t iteration) const;
  /// Position in the unit of the recv of a value; nothing if it is not received.
  std::optional<unsigned> findRecv(const Value *value) const;

private:
  std::vector<Segment> segments;
  llvm::DenseMap<const Op *, std::pair<unsigned, unsigned>> positions; ///< segment, position
  llvm::DenseMap<const Value *, unsigned> recvs;
  llvm::DenseMap<unsigned, unsigned> loops;
  llvm::DenseMap<const Op *, bool> straight; ///< Top-level ops that run here.
  unsigned numNodes = 0;
};

/// A template at a place in a rank's trace.
struct PlacedUnit {
  const Layout *layout = nullptr;
  uint64_t base = 0; ///< Id of its first node.
  bool isBackward = false, isStep = false;
  unsigned microbatch = 0, chunk = 0;
  const PlacedUnit *partner = nullptr; ///< The forward unit of a backward one.
};

/// Finds the nodes that produced values on one stage.
class Producers {
public:
  Producers(const Graph &graph, llvm::ArrayRef<PlacedUnit> lastBackward) : graph(graph), lastBackward(lastBackward) {}

  /// Appends the ids of the nodes that a value, used in `unit` at `iteration` (-1: outside of loops), waits for.
  void find(const Value *value, const PlacedUnit &unit, int64_t iteration, llvm::SmallVectorImpl<uint64_t> &ids) const;

private:
  void findArgument(const Value *value, const PlacedUnit &unit, int64_t iteration,
                    llvm::SmallVectorImpl<uint64_t> &ids) const;
  void findLoopResult(const Value *value, const PlacedUnit &unit, llvm::SmallVectorImpl<uint64_t> &ids) const;

  const Graph &graph;
  /// The last backward unit of each chunk.
  llvm::ArrayRef<PlacedUnit> lastBackward;
};

} // namespace stage

#endif // STAGE_LIB_CODEGEN_LAYOUT_H
