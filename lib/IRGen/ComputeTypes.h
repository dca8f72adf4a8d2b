//===- ComputeTypes.h - in which types ops read values ---------*- C++ -*-===//
//
// Problem: parameters may be kept in more bits than ops compute in, as f32 weights beside
// bf16 activations. What is made of a weight and an activation is an activation:
//
//   precision p { weight = f32; activation = bf16; ... }
//
//   param embed: [V, D]                  f32
//   let x = lookup(tokens, embed)        bf16: ops read `embed` as bf16
//   let y = linear(x, w) + b             bf16, though `b` is f32
//
// That holds for parameters and buffers without an element type of their own, and for
// views of these (R12.4).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IRGEN_COMPUTETYPES_H
#define STAGE_LIB_IRGEN_COMPUTETYPES_H

#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

class ComputeTypes {
public:
  explicit ComputeTypes(const Precision &precision) : precision(precision) {}

  /// A parameter or buffer that has the type of weights because it says no other.
  void addWeight(const Value &value) {
    if (getBitSize(precision.weight) > getBitSize(precision.activation))
      wide.insert(&value);
  }
  /// What is a view of a value is read as that is.
  void addView(const Value &view, const Value &of) {
    if (wide.contains(&of))
      wide.insert(&view);
  }
  DType get(const Value &value) const { return wide.contains(&value) ? precision.activation : value.type.dtype; }

private:
  const Precision &precision;
  llvm::DenseSet<const Value *> wide;
};

} // namespace stage

#endif // STAGE_LIB_IRGEN_COMPUTETYPES_H
