//===- TimelinePicture.h - a step in time, by the compiler -----*- C++ -*-===//
//
// Problem: where does the time of a step go, at a glance? A row for each class of ranks, time to the right, as long as
// the machine makes each unit. Two stages, two microbatches, forward 1 ms and backward 2 ms:
//
//   stage 0        | 0 | 1 |       |   0   |   1   |
//   communication      - -
//   stage 1            | 0 |   0   | 1 |   1   |
//                  0   1   2   3   4   5   6   7   8 ms
//
// Boxes of the main line are units, in the colours of the pictures of schedules; thin lines
// below it are the other streams. Where the main line waits for communication it is red; where it waits for another
// stage it is empty. In a window so short that tasks can be read, each unit has a head, and below it its tasks.
//
// Rule: all times are those of the report (stage/Time/StepTimeline.h).
//
// Limits: 64 rows; of more the first and the last ones are drawn, and the picture says so. What is narrower than a
// pixel is merged (lib/Report/LaneBoxes.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_TIMELINEPICTURE_H
#define STAGE_REPORT_TIMELINEPICTURE_H

#include "stage/Report/PictureFrame.h"
#include "stage/Time/StepTimeline.h"
#include "llvm/Support/raw_ostream.h"

namespace stage {

/// As SVG.
void printSvg(llvm::raw_ostream &os, const StepTimeline &timeline, TimelineWindow window, const PictureFrame &frame);
/// As trace events, JSON for Perfetto and chrome://tracing: a process for each class, with a thread for its units, one
/// for each lane, and one for the waits of the main lane. What has a part in the window is written, in whole.
void printEvents(llvm::raw_ostream &os, const StepTimeline &timeline, const std::string &job, TimelineWindow window);

} // namespace stage

#endif // STAGE_REPORT_TIMELINEPICTURE_H
