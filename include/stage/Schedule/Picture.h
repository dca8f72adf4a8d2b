//===- Picture.h - schedules as text and as SVG ----------------*- C++ -*-===//
//
// Stages downwards, time to the right, each unit as long as it takes; the rest is idle.
// Two stages and two microbatches of 1F1B, a backward twice as long as a forward:
//
//   stage 0  F0 F1 .. B0=== B1===
//   stage 1  .. F0 B0=== F1 B1=== ..
//
// Units start as early as simulate() finds that they can. Large schedules are cut: the
// first and the last stages are shown, and the first and the last part of the time, and
// the picture says so. So its size is bounded.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_PICTURE_H
#define STAGE_SCHEDULE_PICTURE_H

#include "stage/Schedule/Schedule.h"

namespace stage {

/// The colour of a kind of unit, on which black letters can be read, and that of idle time.
const char *getFill(PhaseKind kind);
inline constexpr const char *idleFill = "#ededed";
/// For legends: `backward for the weights`.
std::string describeKind(PhaseKind kind);

class SchedulePicture {
public:
  /// A schedule that passes checkSchedule; the times of its units add up to more than 0 and less than 2^62. `title`
  /// says what is drawn, `unit` of which unit the times are; they are shown as numbers if there is one.
  SchedulePicture(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration, std::string title,
                  std::string unit);

  /// Coloured where `os` is a terminal with colours.
  void printText(llvm::raw_ostream &os) const;
  void printSvg(llvm::raw_ostream &os) const;

private:
  /// What is drawn: these stages, in the time before `head` and from `tail` on.
  struct Window {
    std::vector<unsigned> stages;
    int64_t head, tail;
    bool cutsTime() const { return head < tail; }
    bool hasGapBefore(size_t row) const { return row > 0 && stages[row] != stages[row - 1] + 1; }
  };
  /// At most so many stages, and so many steps.
  Window choose(size_t maxStages, int64_t maxSteps) const;
  /// Where times are drawn: so many columns or pixels a step, and some between the two parts of a time that is cut.
  struct Scale {
    const Window &window;
    int64_t step, perStep, gap;
    int64_t scale(int64_t time) const;
    int64_t at(int64_t time, bool isTail) const;
    int64_t headEnd() const { return scale(window.head); }
    int64_t end(int64_t makespan) const { return at(makespan, window.cutsTime()); }
  };
  /// Calls `f` for every unit of a stage that takes place in the window, with where it is drawn.
  void forEachShown(const Window &window, const Scale &scale, unsigned stage,
                    llvm::function_ref<void(const Unit &unit, int64_t begin, int64_t end)> f) const;
  void printTimeAxis(llvm::raw_ostream &os, const Scale &scale, int64_t left, int64_t y) const;
  std::string getSummary() const;
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

#endif // STAGE_SCHEDULE_PICTURE_H
