//===- TaskSizes.h - bytes and FLOPs as nodes hold them --------*- C++ -*-===//
#ifndef STAGE_TASKS_TASKSIZES_H
#define STAGE_TASKS_TASKSIZES_H

#include "stage/IR/graph/Graph.h"
#include "stage/Tasks/Diagnostics.h"

namespace stage {

/// Evaluates the sizes of one class. One that no node can hold is reported, and only the first of them: the others
/// have the same cause, and there will be no trace.
class TaskSizes {
public:
  TaskSizes(const SizeBinding &binding, DiagnosticEngine &diags) : binding(binding), diags(diags) {}

  /// A size in bytes or FLOPs of something; 1 if it cannot be held.
  uint64_t evaluate(Size size, const Value &value) {
    return evaluate(size, value.loc, [&] { return describe(value); });
  }
  uint64_t evaluate(Size size, const Op &op) {
    return evaluate(size, op.loc,
                    [&] { return op.getNumResults() ? describe(*op.getResult()) : getName(op.kind).str(); });
  }

private:
  uint64_t evaluate(Size size, SMLoc loc, llvm::function_ref<std::string()> describe) {
    SizeValue value = evaluateCount(size, binding);
    if (value)
      return uint64_t(value.value.num);
    if (!reported)
      diags.report(loc, diag::NodeSizeUnknown) << describe() << size.str();
    reported = true;
    return 1;
  }

  const SizeBinding &binding;
  DiagnosticEngine &diags;
  bool reported = false;
};

} // namespace stage

#endif // STAGE_TASKS_TASKSIZES_H
