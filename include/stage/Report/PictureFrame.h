//===- PictureFrame.h - what a user says of any picture --------*- C++ -*-===//
#ifndef STAGE_REPORT_PICTUREFRAME_H
#define STAGE_REPORT_PICTUREFRAME_H

#include "stage/Machine/Ticks.h"
#include <string>

namespace stage {

/// `--title` and `--width`.
struct PictureFrame {
  std::string title; ///< `job pretrain (tp = 4), pp 4 x dp 2 x tp 4`.
  int64_t width;     ///< Pixels.
};

/// What is drawn of a step: from `from` to before `to`, which is later, and no later than the step's end. In ticks, or,
/// where a picture has no machine, in units of time of its own.
struct TimelineWindow {
  Ticks from, to;
};

} // namespace stage

#endif // STAGE_REPORT_PICTUREFRAME_H
