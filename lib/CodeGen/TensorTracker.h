//===- TensorTracker.h - which tensors a node reads and writes --*- C++ -*-===//
//
// Problem: simulators that track memory want on every node the tensors it reads and
// those it writes, `inputs` and `outputs`, and want them in a form of their own: a
// name is written once and never after it was read; a tensor is free after its last
// read; what nobody writes is there from the beginning.
//
//   %h = linear(%x, %w)        inputs [t1 F0, p2], outputs [t3 F0]
//   %h2 = all_reduce(%h)       inputs [t3 F0]          in place
//   backward  %dw = ...        inputs [t1 F0, t7 B0, g2]  adds into the gradient's buffer
//   step      update           inputs [p2, g2, s2]     and so are parameters and states updated
//
// Names: `p` parameters, `g` gradient buffers, `s` optimizer states, `i` inputs of a
// microbatch, `t` everything else; a number per value of the program, the iteration of
// its repeat, and the unit that made it.
//
// Algorithm: a value is followed to its origin (Producers) through what is no tensor of
// its own: what iterations hand on, slices, which are views, and reductions in place.
// The rules are those of docs/Memory.md: M2 and M10 for gradients, M7 to M9.
//
// Limits: an all_reduce works in place where nothing else uses its operand, also if
// the other uses come before it. Numbers of no dims (constants) are no tensors.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_CODEGEN_TENSORTRACKER_H
#define STAGE_LIB_CODEGEN_TENSORTRACKER_H

#include "Layout.h"
#include "NodeSizes.h"
#include "stage/CodeGen/NodeWriter.h"
#include <deque>

namespace stage {

class TensorTracker {
public:
  /// All must outlive the tracker.
  TensorTracker(const Program &program, const Producers &producers, NodeSizes &nodeSizes)
      : graph(*program.graph), buffers(program.buffers), producers(producers), nodeSizes(nodeSizes) {}

  /// Sets the lists of an op's node, valid until the next call.
  void trackOp(const Op &op, const PlacedUnit &unit, int64_t iteration, NodeFields &node);
  /// The same for a send or recv of a value.
  void trackMessage(const Value *value, const PlacedUnit &unit, int64_t iteration, NodeFields &node);

private:
  void clear();
  void read(const Value *value, const PlacedUnit &unit, int64_t iteration);
  void readOrigin(const Origin &origin);
  void readStates(const Op &update, const PlacedUnit &unit, int64_t iteration);
  void addInput(std::string name, uint64_t bytes);
  void addOutput(std::string name, uint64_t bytes);
  bool isRead(const Value *value) const;
  bool isInPlace(const Op &op, const PlacedUnit &unit, int64_t iteration) const;
  std::string getName(char kind, const Value *value, int64_t iteration);
  std::string getName(const Value *value, const PlacedUnit &unit, int64_t iteration);
  uint64_t getBytes(const Value *value);

  const Graph &graph;
  const GradientBuffers &buffers;
  const Producers &producers;
  NodeSizes &nodeSizes;
  llvm::DenseMap<const Value *, unsigned> numbers;
  llvm::DenseMap<const Value *, uint64_t> sizes;
  std::deque<std::string> names; ///< Those of the current node.
  std::vector<TensorUse> inputs, outputs;
};

} // namespace stage

#endif // STAGE_LIB_CODEGEN_TENSORTRACKER_H
