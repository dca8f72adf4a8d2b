//===- RingSteps.h - pieces that go from rank to rank ----------*- C++ -*-===//
//
// Problem: ranks work on one piece after the other, while pieces, or sums of what was made of
// them, travel beside that work from each rank to the next. Blocks of keys do so (UnrollRings.cpp)
// and what products take and make (OverlapProducts.cpp). What the two have in common is here: the
// permutes, what they wait for, and which piece a rank has in which step.
//
// Over one axis of n ranks all hops are along it. Over several, (a, b), all but each n-th hop
// are along the inner one:
//
//   a = 2, b = 3      hop            b    b    a    b    b
//   rank (i, j) has   (i, j)  (i, j-1)  (i, j-2)  (i-1, j-2)  (i-1, j)  (i-1, j-1)
//
// so that in as many steps as there are ranks each has been at every piece, and each hop is
// along one axis.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_RINGSTEPS_H
#define STAGE_LIB_TRANSFORMS_RINGSTEPS_H

#include "stage/IR/graph/Graph.h"

namespace stage {

class RingSteps {
public:
  /// A ring over these axes. What is made stands in front of `where`, and belongs where `like` does.
  RingSteps(Graph &graph, llvm::ArrayRef<PlacedAxis> axes, Op &where, const Op &like);

  unsigned getNumSteps() const { return numSteps; }
  /// The axis along which is sent before a step, 1 to the number of steps less 1.
  AxisId getHop(unsigned step) const;
  /// By so many hops: what a rank has is what the one so many before had.
  void rotate(llvm::MutableArrayRef<PlacedAxis> placed, AxisId axis, uint32_t hops = 1) const;

  /// In front of `where`, or behind what has been inserted since `goBehind`.
  Op *insert(std::unique_ptr<Op> op);
  llvm::ArrayRef<Op *> getInserted() const { return inserted; }
  void goBehind(Op &op) { last = &op; }
  bool isBehind(const Op &op) const { return last == &op; }
  Value *addResult(Op &op, const Value &like, const Sharding &sharding) const;

  /// What is sent from now on is received once the results of ops that are of this phase have been made.
  void setStep(llvm::ArrayRef<Value *> awaited);
  /// What the first pieces are received after: what the first step itself waits for. Where that is all of an earlier
  /// phase, as of attention that backward makes again, it is what is computed before: a piece that came with the
  /// gradients of the last layer would take memory from there on. Gradients of parameters may be computed at other
  /// times.
  void setFirstStep(llvm::ArrayRef<Value *> operands, Value *computedBefore);

  /// To the rank so many further on along an axis, counted around: 1 is the next one.
  Value *send(Value *value, AxisId axis, uint32_t hops = 1);
  Value *add(llvm::ArrayRef<Value *> addends);

private:
  bool isOfSameTurn(const Op &before) const;

  Graph &graph;
  llvm::SmallVector<PlacedAxis, 2> axes;
  Op &where;
  const Op &like;
  unsigned numSteps = 1;
  llvm::SmallVector<OrderEdge, 0> step; ///< After what the next pieces are received: the step before has ended by then.
  Op *last = nullptr;
  std::vector<Op *> inserted;
};

/// Finds, op by op in the order of the program, what is computed last: a ring of backward that waits for nothing else
/// begins there.
class ComputedBefore {
public:
  explicit ComputedBefore(const Graph &graph) : graph(graph) {}
  void visit(const Op &op);
  Value *get() const { return value; }

private:
  const Graph &graph;
  Value *value = nullptr;
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_RINGSTEPS_H
