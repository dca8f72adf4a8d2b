//===- TensorTracker.h - which tensors a node reads and writes --*- C++ -*-===//
//
// Problem: simulators that track memory want on every node the tensors it reads and
// those it writes, `inputs` and `outputs`, and want them in a form of their own: a
// name is written once and never after it was read; a tensor is free after its last
// read; what nobody writes is there from the beginning.
//
//   %h = linear(%x, %w)        inputs [p2, t1 F0], outputs [t3 F0]
//   %h2 = all_reduce(%h)       inputs [t3 F0]          in place
//   backward  %dw = ...        inputs [g2, t1 F0, t7 B0]  adds into the gradient's buffer
//   step      update           inputs [p2, g2, s2]     and so are parameters and states updated
//
// Names: `p` parameters, `g` gradient buffers, `s` optimizer states, `i` inputs of a
// microbatch, `r` what software keeps in all of a step, `k` what it keeps for a gradient, `t` everything else; a number
// per value of the program, the iteration of its repeat, and the unit that made it.
//
// Algorithm: each chain of units is simulated once, as for the report
// (UnitSimulator). The k-th node of a unit accesses what the k-th node of the simulation
// does. The inputs of a unit are written by the first node of the unit before that is no
// message (ClassTasks says which), those of the first by nobody. Static tensors are found through Producers, and
// held by the rank's last node, for they outlive the step.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_CODEGEN_TENSORTRACKER_H
#define STAGE_LIB_CODEGEN_TENSORTRACKER_H

#include "stage/CodeGen/NodeWriter.h"
#include "stage/Memory/UnitSimulator.h"
#include "stage/Tasks/ClassTasks.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

namespace stage {

class TensorTracker : public TaskObserver {
public:
  /// Observes the tasks of a class from here on. All must outlive the tracker.
  /// Without `memory` software keeps nothing besides.
  TensorTracker(const Program &program, ClassTasks &tasks, const RuntimeMemory *memory, DiagnosticEngine &diags);

  void observeOp(const Op &op, const PlacedUnit &unit, int64_t iteration, const Task &task,
                 llvm::ArrayRef<const PlacedUnit *> loaded) override;
  void observeMessage(const Value *value, const PlacedUnit &unit, int64_t iteration, const Task &task) override;
  /// Sets the lists of the node of the last task that was observed, valid until the next one is. The rank's last node
  /// holds what is not freed at its last use.
  void addLists(NodeFields &node, bool isLast);

private:
  void clear();
  void trackTensors(const PlacedUnit &unit, const Task &task);
  void loadInputs(const PlacedUnit &unit);
  const UnitSimulator &getSimulator(const PlacedUnit &unit) const {
    return chains[placeOf[graph.pipeline.environments.getAlike(unit.environment)] * numChains + unit.chain];
  }
  void addOutput(std::string name, uint64_t bytes);
  void readStatic(const Op &op, const PlacedUnit &unit, int64_t iteration);
  void readStatic(const Value *value, const PlacedUnit &unit, int64_t iteration);
  void readStates(const Op &update, const PlacedUnit &unit, int64_t iteration);
  void addStatic(std::string name, uint64_t bytes);
  void addInput(std::string name, uint64_t bytes);
  std::string getName(char kind, const Value *value, int64_t iteration);
  std::string getName(const UnitTensor &tensor, const PlacedUnit &unit, unsigned part = 0);
  uint64_t getBytes(const Value *value);

  const Graph &graph;
  const GradientBuffers &buffers;
  const Producers &producers;
  TaskSizes &taskSizes;
  ChainLifetimes lifetimes;
  unsigned numChains = 0;           ///< Of the stage.
  std::vector<unsigned> placeOf;    ///< By environment: in the list of those with sizes of their own.
  std::deque<UnitSimulator> chains; ///< Per environment with sizes of its own all of them.
  std::vector<std::pair<std::string, uint64_t>> residents; ///< That no node has listed yet.
  llvm::DenseMap<const Value *, unsigned> numbers;
  llvm::DenseMap<const Value *, uint64_t> sizes;
  std::vector<std::pair<std::string, uint64_t>> statics; ///< All that were read, in the order of the first read.
  llvm::StringSet<> knownStatics;
  std::deque<std::string> names; ///< Those of the current node.
  std::vector<TensorUse> inputs, outputs;
  llvm::StringSet<> known; ///< Names of `inputs`.
};

} // namespace stage

#endif // STAGE_LIB_CODEGEN_TENSORTRACKER_H
