//===- Picture.cpp - schedules as text and as SVG -------------------------===//
#include "stage/Schedule/Picture.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace stage;

namespace {
/// How a kind of unit looks: readable with black letters on it, and apart for those who do not see all colours.
struct Look {
  const char *fill;
  llvm::raw_ostream::Colors terminal;
};
} // namespace

static Look getLook(PhaseKind kind) {
  using Colors = llvm::raw_ostream::Colors;
  switch (kind) {
  case PhaseKind::Forward:
    return {"#9ccbf0", Colors::CYAN};
  case PhaseKind::Draft:
    return {"#c5dfb3", Colors::GREEN};
  case PhaseKind::Decode:
    return {"#8fd0c8", Colors::BLUE};
  case PhaseKind::Store:
  case PhaseKind::Load:
    return {"#e3d9c6", Colors::WHITE};
  case PhaseKind::Recompute:
    return {"#d3c1e6", Colors::MAGENTA};
  case PhaseKind::Backward:
    return {"#f5b27a", Colors::YELLOW};
  case PhaseKind::BackwardInput:
    return {"#f7dc6f", Colors::YELLOW};
  case PhaseKind::BackwardWeight:
    return {"#9fd8a8", Colors::GREEN};
  case PhaseKind::Reduce:
  case PhaseKind::Step:
    return {"#c8ccd0", Colors::WHITE};
  }
  llvm_unreachable("covered switch");
}

const char *stage::getFill(PhaseKind kind) { return getLook(kind).fill; }

std::string stage::describeKind(PhaseKind kind) {
  switch (kind) {
  case PhaseKind::BackwardInput:
    return "backward for the input";
  case PhaseKind::BackwardWeight:
    return "backward for the weights";
  case PhaseKind::Recompute:
    return "forward computed again";
  default:
    return getName(kind).str();
  }
}

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

SchedulePicture::Window SchedulePicture::choose(size_t maxStages, int64_t maxSteps) const {
  Window window;
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    if (schedule.stages <= maxStages || stage < maxStages / 2 || schedule.stages - stage <= maxStages / 2)
      window.stages.push_back(stage);
  window.head = window.tail = times.makespan;
  if (times.makespan / step > maxSteps) {
    window.head = maxSteps / 2 * step;
    window.tail = times.makespan - window.head;
  }
  return window;
}

int64_t SchedulePicture::Scale::scale(int64_t time) const {
  return int64_t((__int128(time) * perStep * 2 + step) / (__int128(step) * 2));
}

int64_t SchedulePicture::Scale::at(int64_t time, bool isTail) const {
  return isTail ? headEnd() + gap + scale(time - window.tail) : scale(time);
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
    show(unit, begin, std::min(end, window.head), /*isTail=*/false);
    if (window.cutsTime())
      show(unit, std::max(begin, window.tail), end, /*isTail=*/true);
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

std::string SchedulePicture::describeCut(const Window &window) const {
  std::string text;
  if (window.stages.size() < schedule.stages)
    text = "the first and the last " + std::to_string(window.stages.size() / 2) + " stages";
  if (window.cutsTime())
    text += std::string(text.empty() ? "" : " and ") + "the first and the last " +
            formatPercent(window.head, times.makespan) + " % of the time";
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

void SchedulePicture::printText(llvm::raw_ostream &os) const {
  if (os.has_colors())
    os.enable_colors(true);
  constexpr int64_t maxColumns = 180;
  int64_t width = int64_t(getLabelSize()) + 1; // a blank
  Window window = choose(/*maxStages=*/64, maxColumns / width);
  Scale scale = {window, step, width, /*gap=*/4};

  os << title << ": " << getSummary() << '\n';
  for (auto [kind, time] : getKinds()) {
    os << getLabel({kind}).front() << ' ' << describeKind(kind);
    if (hasUnit() && time)
      os << " (" << formatCount(*time) << ')';
    os << ", ";
  }
  os << ".. idle\n";
  if (std::string cut = describeCut(window); !cut.empty())
    os << cut << '\n';
  os << '\n';

  // Idle: dots, a blank behind each step of those that people know.
  std::string idle(scale.end(times.makespan), '.');
  auto printBlanks = [&](int64_t begin, int64_t end, bool isTail) {
    for (int64_t time = begin + step; time <= end && hasUnit(); time += step)
      idle[scale.at(time, isTail) - 1] = ' ';
  };
  printBlanks(0, window.head, /*isTail=*/false);
  if (window.cutsTime()) {
    idle.replace(scale.headEnd(), scale.gap, "~~~ ");
    printBlanks(window.tail, times.makespan, /*isTail=*/true);
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
        os.changeColor(getLook(unit.kind).terminal);
      os << box;
      if (os.has_colors())
        os.resetColor();
      os << ' ';
      column = end;
    });
    os << idle.substr(column) << " idle " << formatPercent(times.getBubble(stage), times.makespan) << " %\n";
  }
}

//===----------------------------------------------------------------------===//
// SVG
//===----------------------------------------------------------------------===//

void SchedulePicture::printSvg(llvm::raw_ostream &os) const {
  // Pixels. The letter of a kind is its colour here.
  constexpr int64_t left = 72, right = 90, top = 70, rowHeight = 26, boxHeight = 22, letter = 7, minWidth = 720;
  constexpr int64_t maxSteps = 240, maxBoxes = 8192;
  constexpr size_t maxStages = 64;
  int64_t rows = int64_t(std::min<size_t>(schedule.stages, maxStages));
  Window window = choose(maxStages, std::min(maxSteps, maxBoxes / rows));
  Scale scale = {window, step, 11 + letter * int64_t(getLabelSize() - 1), /*gap=*/40};
  std::vector<int64_t> tops;
  int64_t bottom = top;
  for (size_t row = 0; row < window.stages.size(); ++row, bottom += rowHeight) {
    bottom += window.hasGapBefore(row) ? rowHeight : 0;
    tops.push_back(bottom);
  }
  int64_t end = scale.end(times.makespan), width = std::max(minWidth, left + end + right), height = bottom + 28;
  std::vector<std::pair<PhaseKind, std::optional<int64_t>>> kinds = getKinds();

  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height << "\" viewBox=\"0 0 "
     << width << ' ' << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
     << "<text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">" << escapeXml(title) << "</text>\n"
     << "<text x=\"8\" y=\"38\">" << escapeXml(getSummary());
  if (std::string cut = describeCut(window); !cut.empty())
    os << "; " << cut;
  os << "</text>\n";
  int64_t x = 8;
  auto printEntry = [&](const char *fill, const std::string &text) {
    os << "<rect x=\"" << x << "\" y=\"46\" width=\"12\" height=\"12\" fill=\"" << fill
       << "\" stroke=\"#555\" stroke-width=\".5\"/><text x=\"" << x + 16 << "\" y=\"56\">" << text << "</text>\n";
    x += 32 + 6 * int64_t(text.size());
  };
  for (auto [kind, time] : kinds)
    printEntry(getLook(kind).fill, describeKind(kind) + (hasUnit() && time ? " (" + formatCount(*time) + ")" : ""));
  printEntry(idleFill, "idle");
  os << "<text x=\"" << x << "\" y=\"56\">numbers: " << (schedule.chunks > 1 ? "microbatch.chunk" : "microbatches")
     << "</text>\n";

  auto printRect = [&](int64_t begin, int64_t end, int64_t y) {
    os << "<rect x=\"" << left + begin << "\" y=\"" << y << "\" width=\"" << end - begin << "\" height=\"" << boxHeight
       << "\"/>\n";
  };
  // Idle is where nothing is drawn over it.
  os << "<g fill=\"" << idleFill << "\">\n";
  for (int64_t y : tops) {
    printRect(0, scale.headEnd(), y);
    if (window.cutsTime())
      printRect(scale.headEnd() + scale.gap, end, y);
  }
  os << "</g>\n";
  for (auto [kind, time] : kinds) {
    os << "<g fill=\"" << getLook(kind).fill << "\" stroke=\"#555\" stroke-width=\".5\">\n";
    for (auto [stage, y] : llvm::zip(window.stages, tops))
      forEachShown(window, scale, stage, [&, kind = kind, y = y](const Unit &unit, int64_t begin, int64_t end) {
        if (unit.kind == kind && begin < end)
          printRect(begin, end, y);
      });
    os << "</g>\n";
  }
  os << "<g text-anchor=\"middle\">\n";
  for (auto [stage, y] : llvm::zip(window.stages, tops))
    forEachShown(window, scale, stage, [&, y = y](const Unit &unit, int64_t begin, int64_t end) {
      std::string label = getLabel(unit);
      label = isOncePerStep(unit.kind) ? label : label.substr(1);
      if (end - begin >= 2 + letter * int64_t(label.size()))
        os << "<text x=\"" << left + (begin + end) / 2 << "\" y=\"" << y + 15 << "\">" << label << "</text>\n";
    });
  if (window.cutsTime())
    for (int64_t y : tops)
      os << "<text x=\"" << left + scale.headEnd() + scale.gap / 2 << "\" y=\"" << y + 15 << "\">...</text>\n";
  os << "</g>\n";
  for (size_t row = 0; row < tops.size(); ++row) {
    unsigned stage = window.stages[row];
    os << "<text x=\"8\" y=\"" << tops[row] + 15 << "\">stage " << stage << "</text><text x=\"" << left + end + 8
       << "\" y=\"" << tops[row] + 15 << "\">idle " << formatPercent(times.getBubble(stage), times.makespan)
       << " %</text>\n";
    if (window.hasGapBefore(row))
      os << "<text x=\"8\" y=\"" << tops[row] + 15 - rowHeight << "\">...</text>\n";
  }
  printTimeAxis(os, scale, left, bottom);
  os << "</svg>\n";
}

/// Ticks at round numbers of steps, some 60 pixels apart.
void SchedulePicture::printTimeAxis(llvm::raw_ostream &os, const Scale &scale, int64_t left, int64_t y) const {
  if (!hasUnit())
    return;
  int64_t distance = step;
  for (int64_t factor : {2, 5, 10, 20, 50, 100})
    if (scale.scale(distance) < 60)
      distance = step * factor;
  os << "<g text-anchor=\"middle\" fill=\"#555\">\n";
  auto printTicks = [&](int64_t begin, int64_t end, bool isTail) {
    for (int64_t time = (begin + distance - 1) / distance * distance; time <= end; time += distance) {
      int64_t x = left + scale.at(time, isTail);
      os << "<path d=\"M" << x << ' ' << y - 2 << "v5\" stroke=\"#555\"/><text x=\"" << x << "\" y=\"" << y + 16
         << "\">" << time << "</text>\n";
    }
  };
  printTicks(0, scale.window.head, /*isTail=*/false);
  if (scale.window.cutsTime())
    printTicks(scale.window.tail, times.makespan, /*isTail=*/true);
  os << "</g>\n";
}
