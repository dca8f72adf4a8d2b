//===- LaneBoxes.h - a line of boxes in a picture --------------*- C++ -*-===//
//
// Problem: a stage runs a thousand units of a hundred tasks each, and a picture has 1,500 pixels. Its file must not
// have a box for each task, and where tasks are narrower than a pixel it must not show a busy line where half is idle.
//
//   times        |----------------|  |-| |-| |-|              one long box, three short ones
//   pixels       |    |    |    |    |    |    |    |
//   drawn        the box of 3.4 pixels; the pixels of the others, as opaque as they are covered: 60 %, 60 %, 0 %
//
// Rule: what is a pixel wide or more is a box. Of what is narrower each pixel adds up how much of it is covered, per
// colour, in quarters. So a line has no more than so many boxes as it has pixels.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_LANEBOXES_H
#define STAGE_LIB_REPORT_LANEBOXES_H

#include "stage/Machine/Ticks.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <string>
#include <vector>

namespace stage {

/// From times to places, in thousandths of a pixel.
struct TimeScale {
  Ticks from, to;
  int64_t width; ///< Pixels.
  static constexpr int64_t perPixel = 1000;
  /// Of a time inside.
  int64_t at(Ticks time) const {
    return int64_t((__int128(time - from) * width * perPixel * 2 + (to - from)) / (__int128(to - from) * 2));
  }
};

class LaneBoxes {
public:
  static constexpr int64_t labelMargin = 3; ///< Pixels beside labels.
  explicit LaneBoxes(const TimeScale &scale) : scale(scale) {}

  /// What a box says.
  struct Text {
    std::vector<std::string> labels; ///< The first one that fits is shown.
    std::string hover;               ///< Where the mouse stands; empty: nothing.
  };
  /// Adds a box, as far as it lies in the time that is drawn. `describe` is asked where it is a pixel wide. Boxes do
  /// not overlap.
  void add(const char *fill, Ticks begin, Ticks end, llvm::function_ref<Text()> describe);
  bool isEmpty() const { return boxes.empty() && covered.empty(); }

  struct Place {
    int64_t left, top, height; ///< Pixels.
    int64_t fontSize = 11;     ///< Of labels.
  };
  void printBoxes(llvm::raw_ostream &os, const Place &place, bool isFramed = true) const;
  /// Above what is drawn over boxes. `first`: the first label that may be shown.
  void printLabels(llvm::raw_ostream &os, const Place &place, size_t first = 0) const;

private:
  struct Box {
    const char *fill;
    int64_t begin, end;
    Text text;
  };
  TimeScale scale;
  std::vector<Box> boxes;
  /// By colour: of each pixel, how much of it is covered.
  std::map<llvm::StringRef, std::vector<int64_t>> covered;
};

/// Ticks at round times, 90 pixels apart or more: lines of a grid from `top` to `bottom`, or marks with their times.
void printTimeAxis(llvm::raw_ostream &os, const TimeScale &scale, int64_t left, int64_t top, int64_t bottom,
                   bool isGrid);

} // namespace stage

#endif // STAGE_LIB_REPORT_LANEBOXES_H
