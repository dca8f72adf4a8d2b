//===- TaskNames.h - what the nodes of an op are called --------*- C++ -*-===//
//
//   op                                          op_type        name, in iteration 3 of F1
//   %q "layers.attn.q" = linear(...)            linear         layers.3.attn.q F1
//   %t "layers.h.grad" = all_reduce %g over tp  all_reduce     layers.3.h.grad all_reduce F1
//   %d "layers.w.grad" = linear.1.dw(...)       linear.dw      layers.3.w.grad F1
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_TASKNAMES_H
#define STAGE_TASKS_TASKNAMES_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/StringMap.h"

namespace stage {

struct TaskName {
  std::string beforeIteration, afterIteration; ///< Around the iteration's number.
  std::string opType;
  bool inLoop = false;

  /// `suffix` names the unit.
  std::string get(int64_t iteration, llvm::StringRef suffix) const {
    return (beforeIteration + llvm::Twine(inLoop ? std::to_string(iteration) : "") + afterIteration + suffix).str();
  }
};

class TaskNames {
public:
  explicit TaskNames(const Graph &graph);

  TaskName get(const Op &op) const;

private:
  std::string getOpType(const Op &op) const;

  /// The class of the FLOPs of all operators that share a name but for the number of their variant, if it is one.
  llvm::StringMap<std::optional<FlopClass>> classes;
};

} // namespace stage

#endif // STAGE_TASKS_TASKNAMES_H
