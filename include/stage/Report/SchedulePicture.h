//===- SchedulePicture.h - schedules as text and as SVG --------*- C++ -*-===//
//
// Stages downwards, time to the right, each unit as long as it takes; the rest is idle.
// Two stages and two microbatches of 1F1B, a backward twice as long as a forward:
//
//   stage 0  F0 F1 .. B0=== B1===
//   stage 1  .. F0 B0=== F1 B1=== ..
//
// Units start as early as simulate() finds that they can.
//
// Problem: 16 stages and 120 microbatches take 400 units of time, and a column of a paper has 900 pixels. Two pixels
// for a forward show the shape of the pipeline, but no numbers; boxes that are wide enough for numbers need 11,000.
//
// Therefore SVG has a width. Where the numbers fit, there is one panel. Else the first panel is of all the time,
// without numbers, and below it others have as much time as can be read: the beginning, a part of the time in which the
// stages repeat themselves (stage/Schedule/EqualRuns.h), and the end. The first panel shows which times these are, and
// how often the stages do the same.
//
// Text is cut: its head and its tail are shown. Of more than 64 stages the first and the last ones are drawn. So the
// size of a picture is bounded.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_SCHEDULEPICTURE_H
#define STAGE_REPORT_SCHEDULEPICTURE_H

#include "stage/Report/PictureFrame.h"
#include "stage/Schedule/EqualRuns.h"

namespace stage {

class SchedulePicture {
public:
  /// A schedule that passes checkSchedule; the times of its units add up to more than 0 and less than 2^62. `title`
  /// says what is drawn, `unit` of which unit the times are; they are shown as numbers if there is one, else in percent
  /// of the whole.
  SchedulePicture(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration, std::string title,
                  std::string unit);

  int64_t getMakespan() const { return times.makespan; }
  /// Coloured where `os` is a terminal with colours.
  void printText(llvm::raw_ostream &os, TimelineWindow drawn) const;
  void printSvg(llvm::raw_ostream &os, TimelineWindow drawn, const PictureFrame &frame) const;

private:
  friend class ScheduleSvg;
  static constexpr size_t maxStages = 64;
  /// What text shows: of the stages the time from `from` to before `head`, and from `tail` on.
  struct Window {
    std::vector<unsigned> stages;
    int64_t from, head, tail, to;
    bool cutsTime() const { return head < tail; }
    bool hasGapBefore(size_t row) const { return row > 0 && stages[row] != stages[row - 1] + 1; }
  };
  std::vector<unsigned> listShownStages() const;
  /// At most so many steps.
  Window choose(TimelineWindow drawn, int64_t maxSteps) const;
  /// Where times are drawn: so many columns a step, and some between the two parts of a time that is cut.
  struct Scale {
    const Window &window;
    int64_t step, perStep, gap;
    int64_t scale(int64_t time) const;
    int64_t at(int64_t time, bool isTail) const;
    int64_t headEnd() const { return scale(window.head - window.from); }
    int64_t end() const { return at(window.to, window.cutsTime()); }
  };
  /// Calls `f` for every unit of a stage that takes place in the window, with where it is drawn.
  void forEachShown(const Window &window, const Scale &scale, unsigned stage,
                    llvm::function_ref<void(const Unit &unit, int64_t begin, int64_t end)> f) const;
  std::string getSummary() const;
  /// `from 20 to 40 units of time`; empty if all is drawn.
  std::string describeDrawn(TimelineWindow drawn) const;
  std::string formatTime(int64_t time) const;
  /// Empty if nothing is left out.
  std::string describeCut(const Window &window) const;
  /// Kinds that take time, in the order of Phases.def, with the time that all units of the kind take, if it is one.
  std::vector<std::pair<PhaseKind, std::optional<int64_t>>> getKinds() const;
  /// `F0.1`; `S` of a step.
  std::string getLabel(const Unit &unit) const;
  size_t getLabelSize() const;
  /// Times are whole numbers of some unit that people know.
  bool hasUnit() const { return !unit.empty(); }

  const Schedule &schedule;
  std::vector<std::vector<int64_t>> durations;
  ScheduleTimes times;
  std::string title, unit;
  /// What is drawn as wide as a label: the shortest time of a unit of a microbatch that is a quarter of the longest or
  /// more.
  int64_t step;
};

} // namespace stage

#endif // STAGE_REPORT_SCHEDULEPICTURE_H
