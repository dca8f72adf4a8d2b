//===- Grid.h - values measured at points ----------------------*- C++ -*-===//
//
// Problem: how far a product stays behind the peak of a device depends on its shape, and is known at some points only.
//
//   m,n,k,ratio              axes {64, 4096}, {512}, {256, 1024}; values {4.1, 3.9, 1.5, 1.2}
//   64,512,256,4.1
//   64,512,1024,3.9
//   4096,512,256,1.5
//   4096,512,1024,1.2
//
// Each combination of coordinates has a value; the last axis varies fastest. Coordinates ascend, and all numbers are
// above 0 and finite. Whoever makes a grid has checked this.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_GRID_H
#define STAGE_SYMBOLIC_GRID_H

#include <vector>

namespace stage {

struct Grid {
  std::vector<std::vector<double>> axes; ///< Coordinates, ascending, by axis.
  std::vector<double> values;
  bool operator==(const Grid &other) const = default;
};

} // namespace stage

#endif // STAGE_SYMBOLIC_GRID_H
