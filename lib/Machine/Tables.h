//===- Tables.h - values between measured points ---------------*- C++ -*-===//
//
// Problem: a table has the time of some shapes, and an op has another shape.
//
//   m = 64: 4.0     m = 4096: 1.6     m = 512, half way by its logarithm: 2.8
//
// Rule: what is interpolated for shapes is the ratio of time and roof, linear in the logarithm of each coordinate;
// beyond the border it is that of the border. Times of collectives are linear in bytes.
//
// Only + - * / and comparisons of doubles are used, so that every machine that compiles finds the same number. Files of
// this library are compiled without contraction of products and sums.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_MACHINE_TABLES_H
#define STAGE_LIB_MACHINE_TABLES_H

#include "stage/Symbolic/Grid.h"
#include "llvm/ADT/ArrayRef.h"

namespace stage {

/// Of a number above 0.
double log2OfOurOwn(double value);

/// The position of the coordinate nearest to `value`; of two that are equally near, that of the larger.
size_t findNearest(llvm::ArrayRef<double> axis, double value);

/// The value at a point that has a coordinate for each axis behind the first `fixed.size()` ones, whose positions are
/// given.
double interpolate(const Grid &grid, llvm::ArrayRef<size_t> fixed, llvm::ArrayRef<double> point);

/// Whether each coordinate lies within its axis.
bool contains(const Grid &grid, llvm::ArrayRef<double> point);

/// The time of a collective of so many ranks and bytes of the whole tensor, in microseconds: linear in bytes from the
/// table's nearest group, beyond its last point at the rate of that. Each rank of g sends (g-1)/g of the tensor.
double interpolateCollective(const Grid &grid, double ranks, double bytes);

} // namespace stage

#endif // STAGE_LIB_MACHINE_TABLES_H
