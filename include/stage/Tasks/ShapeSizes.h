//===- ShapeSizes.h - sizes on which prices depend -------------*- C++ -*-===//
#ifndef STAGE_TASKS_SHAPESIZES_H
#define STAGE_TASKS_SHAPESIZES_H

#include "stage/Tasks/TaskSizes.h"

namespace stage {

/// A size of an op's shape, on a rank with this binding, which is that of `sizes`. It need not be whole, as the rows of
/// an expert are a mean; then it is rounded up.
inline int64_t evaluateShape(Size size, const Op &op, const SizeBinding &binding, TaskSizes &sizes) {
  SizeValue value = evaluateCount(size, binding);
  if (value)
    return int64_t(value.value.num);
  bool isMean = value.error == SizeError::NotAnInteger && value.value.num > 0;
  return isMean ? int64_t(value.value.ceil().num) : int64_t(sizes.evaluate(size, op));
}

} // namespace stage

#endif // STAGE_TASKS_SHAPESIZES_H
