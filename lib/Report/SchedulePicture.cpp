//===- SchedulePicture.cpp - schedules as text ---------------------------===//
#include "stage/Report/SchedulePicture.h"
#include "PhaseLook.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace stage;

SchedulePicture::SchedulePicture(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration,
                                 std::string title, std::string unit)
    : schedule(schedule), times(simulate(schedule, duration)), title(std::move(title)), unit(std::move(unit)) {
  int64_t longest = 0;
  durations.resize(schedule.stages);
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
      durations[stage].push_back(duration({stage, position}));
      longest = std::max(longest, durations[stage].back());
    }
  step = longest;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (auto [unit, time] : llvm::zip(schedule.units[stage], durations[stage]))
      if (!isOncePerStep(unit.kind) && time < step && time >= longest / 4 && time > 0)
        step = time;
}

std::vector<unsigned> SchedulePicture::listShownStages() const {
  std::vector<unsigned> stages;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    if (schedule.stages <= maxStages || stage < maxStages / 2 || schedule.stages - stage <= maxStages / 2)
      stages.push_back(stage);
  return stages;
}

SchedulePicture::Window SchedulePicture::choose(TimelineWindow drawn, int64_t maxSteps) const {
  Window window = {listShownStages(), drawn.from, drawn.to, drawn.to, drawn.to};
  if ((drawn.to - drawn.from) / step > maxSteps) {
    window.head = drawn.from + maxSteps / 2 * step;
    window.tail = drawn.to - maxSteps / 2 * step;
  }
  return window;
}

int64_t SchedulePicture::Scale::scale(int64_t time) const {
  return int64_t((__int128(time) * perStep * 2 + step) / (__int128(step) * 2));
}

int64_t SchedulePicture::Scale::at(int64_t time, bool isTail) const {
  return isTail ? headEnd() + gap + scale(time - window.tail) : scale(time - window.from);
}

void SchedulePicture::forEachShown(const Window &window, const Scale &scale, unsigned stage,
                                   llvm::function_ref<void(const Unit &, int64_t, int64_t)> f) const {
  auto show = [&](const Unit &unit, int64_t begin, int64_t end, bool isTail) {
    if (begin < end)
      f(unit, scale.at(begin, isTail), scale.at(end, isTail));
  };
  for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
    const Unit &unit = schedule.units[stage][position];
    int64_t begin = times.start[stage][position], end = begin + durations[stage][position];
    show(unit, std::max(begin, window.from), std::min(end, window.head), /*isTail=*/false);
    if (window.cutsTime())
      show(unit, std::max(begin, window.tail), std::min(end, window.to), /*isTail=*/true);
  }
}

std::string SchedulePicture::getLabel(const Unit &unit) const {
  return isOncePerStep(unit.kind) ? "S" : unit.str(schedule.chunks > 1);
}

size_t SchedulePicture::getLabelSize() const {
  size_t size = 0;
  for (const std::vector<Unit> &units : schedule.units)
    for (const Unit &unit : units)
      size = std::max(size, getLabel(unit).size());
  return size;
}

std::string SchedulePicture::getSummary() const {
  __int128 idle = 0;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    idle += times.getBubble(stage);
  auto count = [](unsigned number, const char *one, const char *many) {
    return std::to_string(number) + " " + (number == 1 ? one : many);
  };
  std::string text = count(schedule.stages, "stage", "stages");
  if (schedule.chunks > 1)
    text += " of " + std::to_string(schedule.chunks) + " chunks";
  text += ", " + count(schedule.microbatches, "microbatch", "microbatches");
  if (hasUnit())
    text += ", " + formatCount(times.makespan) + " " + unit;
  // The mean over stages.
  __int128 hundredths = (idle * 20'000 / schedule.stages + times.makespan) / (__int128(times.makespan) * 2);
  return text + ", bubble " + formatPercent(int64_t(hundredths), 10'000) + " %; communication takes no time here";
}

std::string SchedulePicture::formatTime(int64_t time) const {
  return hasUnit() ? formatCount(time) : formatPercent(time, times.makespan) + " %";
}

std::string SchedulePicture::describeDrawn(TimelineWindow drawn) const {
  if (drawn.from == 0 && drawn.to == times.makespan)
    return "";
  return "drawn is the time from " + formatTime(drawn.from) + " to " + formatTime(drawn.to);
}

std::string SchedulePicture::describeCut(const Window &window) const {
  std::string text;
  if (window.stages.size() < schedule.stages)
    text = "the first and the last " + std::to_string(window.stages.size() / 2) + " stages";
  if (window.cutsTime())
    text += std::string(text.empty() ? "" : " and ") + "the first and the last " +
            formatPercent(window.head - window.from, window.to - window.from) + " % of the time";
  return text.empty() ? text : "only " + text + " are shown";
}

std::vector<std::pair<PhaseKind, std::optional<int64_t>>> SchedulePicture::getKinds() const {
  std::map<PhaseKind, std::optional<int64_t>> kinds;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (auto [unit, time] : llvm::zip(schedule.units[stage], durations[stage])) {
      if (!time)
        continue;
      auto [known, isNew] = kinds.try_emplace(unit.kind, time);
      if (!isNew && known->second != time)
        known->second.reset();
    }
  return {kinds.begin(), kinds.end()};
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

void SchedulePicture::printText(llvm::raw_ostream &os, TimelineWindow drawn) const {
  if (os.has_colors())
    os.enable_colors(true);
  constexpr int64_t maxColumns = 180;
  int64_t width = int64_t(getLabelSize()) + 1; // a blank
  Window window = choose(drawn, maxColumns / width);
  Scale scale = {window, step, width, /*gap=*/4};

  os << title << ": " << getSummary() << '\n';
  for (auto [kind, time] : getKinds()) {
    os << getLabel({kind}).front() << ' ' << describeKind(kind);
    if (hasUnit() && time)
      os << " (" << formatCount(*time) << ')';
    os << ", ";
  }
  os << ".. idle\n";
  for (const std::string &cut : {describeDrawn(drawn), describeCut(window)})
    if (!cut.empty())
      os << cut << '\n';
  os << '\n';

  // Idle: dots, a blank behind each step of those that people know.
  std::string idle(scale.end(), '.');
  auto printBlanks = [&](int64_t begin, int64_t end, bool isTail) {
    for (int64_t time = begin + step; time <= end && hasUnit(); time += step)
      idle[scale.at(time, isTail) - 1] = ' ';
  };
  printBlanks(window.from, window.head, /*isTail=*/false);
  if (window.cutsTime()) {
    idle.replace(scale.headEnd(), scale.gap, "~~~ ");
    printBlanks(window.tail, window.to, /*isTail=*/true);
  }
  size_t nameWidth = ("stage " + std::to_string(schedule.stages - 1)).size();
  for (size_t row = 0; row < window.stages.size(); ++row) {
    unsigned stage = window.stages[row];
    if (window.hasGapBefore(row))
      os << "...\n";
    os << llvm::left_justify("stage " + std::to_string(stage), nameWidth) << "  ";
    int64_t column = 0;
    forEachShown(window, scale, stage, [&](const Unit &unit, int64_t begin, int64_t end) {
      if (begin == end)
        return;
      os << idle.substr(column, begin - column);
      std::string box = getLabel(unit);
      box.resize(end - begin - 1, '=');
      if (os.has_colors())
        os.changeColor(getTerminalColor(unit.kind));
      os << box;
      if (os.has_colors())
        os.resetColor();
      os << ' ';
      column = end;
    });
    os << idle.substr(column) << " idle " << formatPercent(times.getBubble(stage), times.makespan) << " %\n";
  }
}
