//===- FrontPicture.h - plans by two figures, as a picture -----*- C++ -*-===//
//
// Problem: no plan is best in both time and memory. Which plans are worth a choice, and what does each step along them
// change?
//
//   memory, GiB
//   20 |   o tp 1, zero 0             o  a plan of the front
//      |   |      .                   .  another plan that fits
//   10 |   +--o zero 1   .
//      |      +-----o recompute full
//    0 +----------------------
//      0    10    20    30 step, ms
//
// Rule: between two plans of the front the line turns at a right angle, because there is no plan between them. The side
// of the line without plans is free for labels, and is tried first. A label that has no place is listed below.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_FRONTPICTURE_H
#define STAGE_REPORT_FRONTPICTURE_H

#include "stage/Report/PictureFrame.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace stage {

struct FrontAxis {
  /// What its numbers count: the unit that is shown follows from it and from the largest number.
  enum class Quantity { Seconds, Bytes, Share, Tokens, Joules, Dollars };
  std::string title; ///< `step`
  Quantity quantity;
  bool isMost = false; ///< The best plan has most, not least.
};

struct FrontPoint {
  double x, y;
  std::string label; ///< `tp 2, zero 1`
  std::string text;  ///< All of its values; shown where the mouse is over it, and where no label has room.
};

struct FrontPicture {
  FrontAxis x, y;
  std::vector<FrontPoint> front; ///< The best in x first; not empty.
  std::vector<std::pair<double, double>> others;
  std::vector<std::string> lines; ///< Below the title.
};

void printFront(llvm::raw_ostream &os, const FrontPicture &picture, const PictureFrame &frame);

} // namespace stage

#endif // STAGE_REPORT_FRONTPICTURE_H
