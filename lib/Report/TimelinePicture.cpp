//===- TimelinePicture.cpp - a step in time, as SVG -----------------------===//
#include "stage/Report/TimelinePicture.h"
#include "LaneBoxes.h"
#include "PhaseLook.h"
#include "Svg.h"
#include "stage/Machine/TimeText.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

namespace {
constexpr const char *collectiveFill = "#7d9cc0", *messageFill = "#c08fb8", *copyFill = "#a8a8a8",
                     *hostFill = "#9c8468", *exposedFill = "#d6453d";
constexpr int64_t textSize = SvgPage::textSize, smallSize = SvgPage::smallSize;

/// A class of ranks.
struct Row {
  Row(const TimeScale &scale, unsigned classNumber)
      : classNumber(classNumber), units(scale), tasks(scale), waits(scale), gaps(scale) {}
  unsigned classNumber;
  std::string name;
  LaneBoxes units, tasks;
  LaneBoxes waits; ///< Of the main lane, for communication and the host.
  LaneBoxes gaps;  ///< Its other waits.
  std::map<TimedLane, LaneBoxes> lanes;
  StageTime time;
  int64_t numTasks = 0; ///< Of the main lane, in the window.
};

class Painter {
public:
  Painter(const StepTimeline &timeline, TimelineWindow window, const PictureFrame &frame)
      : timeline(timeline), window(window), title(frame.title), width(frame.width) {
    collect();
  }
  void print(llvm::raw_ostream &os);

private:
  /// Heights of the lines of a row.
  struct Heights {
    int64_t head, main, lane, gap; ///< `head`: of units whose tasks are drawn; else 0.
    bool namesLanes;
  };

  void collect();
  void collectRow(Row &row);
  std::string nameRow(unsigned classNumber) const;
  std::vector<std::string> describe() const;
  std::vector<LegendEntry> listLegend() const;
  int64_t getHeight(const Row &row) const {
    return heights.head + heights.main + int64_t(row.lanes.size()) * heights.lane + heights.gap;
  }
  void printRow(llvm::raw_ostream &os, const Row &row, int64_t top) const;
  bool hasTasks() const { return heights.head > 0; }
  bool isShown(Ticks begin, Ticks end) const { return begin < end && end > window.from && begin < window.to; }

  const StepTimeline &timeline;
  TimelineWindow window;
  const std::string &title;
  int64_t width;
  int64_t left = 0;
  static constexpr int64_t right = 128; ///< Of the plot.
  TimeScale scale = {0, 1, 1};
  std::deque<Row> rows;
  std::set<PhaseKind> phases;
  std::set<std::string> fills;
  Heights heights = {};
};
} // namespace

static const char *getFill(const TimedRun &run, PhaseKind phase) {
  switch (run.lane.kind) {
  case TimedLane::Kind::Compute:
    return getFill(phase);
  case TimedLane::Kind::Communication:
    return run.kind == TaskKind::Collective ? collectiveFill : messageFill;
  case TimedLane::Kind::Copies:
    return copyFill;
  case TimedLane::Kind::Host:
    return hostFill;
  }
  llvm_unreachable("covered switch");
}

/// `F3: 1.5 ms, from 20 ms to 21.5 ms`.
static std::string describeTimes(const std::string &name, Ticks begin, Ticks end) {
  const TimeUnit &unit = findTimeUnit(end);
  return name + ": " + formatTime(end - begin) + ", from " + unit.format(begin, 6) + " to " + unit.format(end, 6);
}

/// `F12`, for the head of a unit whose tasks are drawn, then what a box of the unit says: the number of its microbatch.
static std::vector<std::string> listLabels(const PlacedUnit &unit) {
  std::string name = unit.getName();
  if (isOncePerStep(unit.kind))
    return {name, name, "S"};
  if (!unit.ownName.empty()) // of a server: `i4 4d+4@60`
    return {name, name, llvm::StringRef(name).split(' ').first.str()};
  return {name, name.substr(1)};
}

/// `layers.mlp.g gate_up`, `g gate_up`, `gate_up`.
static std::vector<std::string> listLabels(llvm::StringRef name) {
  auto [path, type] = name.rsplit(' ');
  if (type.empty())
    return {name.str()};
  return {name.str(), path.rsplit('.').second.str() + " " + type.str(), type.str()};
}

std::string Painter::nameRow(unsigned classNumber) const {
  const Program &program = timeline.getProgram(classNumber);
  unsigned stage = timeline.getTasks(classNumber).getStage().stage, numAlike = 0;
  for (unsigned other = 0; other < timeline.getNumClasses(); ++other)
    numAlike += timeline.getTasks(other).getStage().stage == stage || &timeline.getProgram(other) != &program;
  return numAlike == 1 ? "stage " + std::to_string(stage)
                       : "rank " + std::to_string(timeline.getRepresentative(classNumber));
}

void Painter::collect() {
  constexpr unsigned maxRows = 64;
  unsigned numClasses = timeline.getNumClasses();
  std::vector<unsigned> shown;
  for (unsigned number = 0; number < numClasses; ++number)
    if (numClasses <= maxRows || number < maxRows / 2 || numClasses - number <= maxRows / 2)
      shown.push_back(number);
  std::vector<std::string> names;
  size_t longest = 0;
  for (unsigned number : shown) {
    names.push_back(nameRow(number));
    longest = std::max(longest, names.back().size());
  }
  left = 16 + std::max(estimateWidth(std::string(longest, 'x'), textSize), estimateWidth("communication", smallSize));
  scale = {window.from, window.to, width - left - right};
  int64_t numLanes = 0, most = 0;
  for (auto [number, name] : llvm::zip(shown, names)) {
    Row &row = rows.emplace_back(scale, number);
    row.name = name;
    collectRow(row);
    numLanes += int64_t(row.lanes.size()) + 1;
    most = std::max(most, row.numTasks);
  }
  // As many tasks as can be told apart.
  constexpr int64_t pixelsPerTask = 8, maxNamedLanes = 40;
  bool hasTasks = most * pixelsPerTask <= scale.width;
  heights = hasTasks                    ? Heights{14, 20, 14, 10, true}
            : numLanes <= maxNamedLanes ? Heights{0, 22, 11, 8, true}
                                        : Heights{0, 20, 5, 5, false};
}

void Painter::collectRow(Row &row) {
  const auto &units = timeline.getTasks(row.classNumber).getUnits();
  /// The tasks of a unit on the main lane, so far.
  struct {
    std::optional<unsigned> number;
    Ticks begin = 0, end = 0;
  } open;
  auto close = [&] {
    if (!open.number)
      return;
    const PlacedUnit &unit = units[*open.number];
    row.units.add(getFill(unit.kind), open.begin, open.end, [&]() -> LaneBoxes::Text {
      return {listLabels(unit), describeTimes(unit.getName(), open.begin, open.end)};
    });
    if (isShown(open.begin, open.end))
      phases.insert(unit.kind);
  };
  auto addRun = [&](const TimedRun &run) {
    const PlacedUnit &unit = units[run.unit];
    auto describe = [&]() -> LaneBoxes::Text {
      std::string name = run.getName(), unitName = unit.getName();
      return {listLabels(name), describeTimes(name + " of " + unitName, run.begin, run.end)};
    };
    const char *fill = ::getFill(run, unit.kind);
    if (!run.lane.isMain()) {
      row.lanes.try_emplace(run.lane, scale).first->second.add(fill, run.begin, run.end, describe);
      if (isShown(run.begin, run.end))
        fills.insert(fill);
      return;
    }
    row.numTasks += isShown(run.begin, run.end);
    if (row.numTasks <= scale.width)
      row.tasks.add(fill, run.begin, run.end, describe);
    if (open.number != run.unit) {
      close();
      open = {run.unit, run.begin, run.end};
    }
    open.end = run.end;
  };
  auto addWait = [&](TimeAccount account, Ticks begin, Ticks end) {
    auto describe = [&]() -> LaneBoxes::Text { return {{}, describeTimes(getName(account).str(), begin, end)}; };
    if (account == TimeAccount::Exposed || account == TimeAccount::Host) {
      const char *fill = account == TimeAccount::Exposed ? exposedFill : hostFill;
      row.waits.add(fill, begin, end, describe);
      if (isShown(begin, end))
        fills.insert(fill);
    } else {
      row.gaps.add(idleFill, begin, end, describe);
    }
  };
  row.time = timeline.visit(row.classNumber, addRun, addWait);
  close();
}

/// The step, where the times are from, and what is left out.
std::vector<std::string> Painter::describe() const {
  int64_t ranks = timeline.getNumRanks();
  std::vector<std::string> lines = {
      "a step takes " + formatTime(timeline.getStep()) + " on " + timeline.getMachine() + ", runtime " +
          timeline.getRuntime(),
      std::string(timeline.isInsideTables() ? "every" : "not every") + " op lies inside the tables of the machine; " +
          formatCount(ranks) + (ranks == 1 ? " rank" : " ranks, a row for all that do the same at the same times")};
  if (window.from > 0 || window.to < timeline.getStep()) {
    const TimeUnit &unit = findTimeUnit(window.to);
    lines.push_back("drawn is the time from " + unit.format(window.from, 6) + " to " + unit.format(window.to, 6));
  }
  if (rows.size() < timeline.getNumClasses())
    lines.push_back("drawn are the first and the last " + std::to_string(rows.size() / 2) + " of " +
                    formatCount(timeline.getNumClasses()) + " rows");
  return lines;
}

std::vector<LegendEntry> Painter::listLegend() const {
  static constexpr std::pair<const char *, const char *> others[] = {
      {collectiveFill, "collective"},
      {messageFill, "message"},
      {copyFill, "copy"},
      {exposedFill, "exposed: compute waits for communication"},
      {hostFill, "host, or waiting for it"},
      {idleFill, "bubble: compute waits for another stage"},
  };
  std::vector<LegendEntry> entries;
  for (PhaseKind phase : phases)
    entries.push_back({getFill(phase), describeKind(phase)});
  for (auto [fill, text] : others)
    if (fill == idleFill || fills.count(fill))
      entries.push_back({fill, text});
  return entries;
}

void Painter::printRow(llvm::raw_ostream &os, const Row &row, int64_t top) const {
  int64_t mainTop = top + heights.head;
  LaneBoxes::Place place = {left, mainTop, heights.main};
  if (hasTasks()) {
    LaneBoxes::Place head = {left, top, heights.head};
    row.units.printBoxes(os, head);
    row.tasks.printBoxes(os, place);
    row.gaps.printBoxes(os, place, /*isFramed=*/false);
    row.waits.printBoxes(os, place);
    row.units.printLabels(os, head);
    row.tasks.printLabels(os, place);
  } else {
    row.units.printBoxes(os, place);
    row.gaps.printBoxes(os, place, /*isFramed=*/false);
    // A strip, above which the colour of the unit is seen.
    constexpr int64_t stripHeight = 7;
    row.waits.printBoxes(os, {left, mainTop + heights.main - stripHeight, stripHeight}, /*isFramed=*/false);
    row.units.printLabels(os, place, /*first=*/1);
  }
  os << "<text x=\"8\" y=\"" << mainTop + (heights.main + 9) / 2 << "\">" << escapeXml(row.name) << "</text>\n";
  if (Ticks step = timeline.getStep()) {
    auto printShare = [&](TimeAccount account, int64_t x) {
      os << "<text x=\"" << x << "\" y=\"" << mainTop + (heights.main + 9) / 2 << "\">"
         << formatPercent(row.time.get(account), step) << "</text>";
    };
    os << "<g text-anchor=\"end\" font-size=\"11\">";
    printShare(TimeAccount::Exposed, width - 72);
    printShare(TimeAccount::Bubble, width - 8);
    os << "</g>\n";
  }
  int64_t y = mainTop + heights.main;
  for (const auto &[lane, boxes] : row.lanes) {
    LaneBoxes::Place line = {left, y + 1, heights.lane - 1, hasTasks() ? 10 : smallSize};
    boxes.printBoxes(os, line);
    if (hasTasks())
      boxes.printLabels(os, line);
    if (heights.namesLanes)
      os << "<text x=\"" << left - 4 << "\" y=\"" << y + (heights.lane + smallSize) / 2
         << "\" text-anchor=\"end\" font-size=\"" << smallSize << "\" fill=\"#555\">"
         << escapeXml(getName(lane, timeline.getProgram(row.classNumber))) << "</text>\n";
    y += heights.lane;
  }
}

void Painter::print(llvm::raw_ostream &out) {
  SvgPage page(width);
  page.addTitle(title);
  for (const std::string &line : describe())
    page.addLine(line);
  page.addLegend(listLegend());
  page.addGap(16);
  llvm::raw_ostream &os = page.getStream();
  int64_t top = page.getTop();
  bool cuts = rows.size() < timeline.getNumClasses();
  std::vector<int64_t> tops;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (cuts && row == rows.size() / 2)
      page.addGap(textSize + 8);
    tops.push_back(page.addPlace(getHeight(rows[row])));
  }
  int64_t bottom = page.addPlace(28);
  SvgPage::Style style = {11, SvgPage::Anchor::End, "#555"};
  page.printText(width - 72, top - 6, "exposed %", style);
  page.printText(width - 8, top - 6, "bubble %", style);
  for (auto [row, rowTop] : llvm::zip(rows, tops)) {
    os << "<path fill=\"" << idleFill << "\" d=\"M" << left << ' ' << rowTop + heights.head << 'h' << scale.width << 'v'
       << heights.main << "H" << left << "z\"/>\n";
    for (size_t lane = 0; lane < row.lanes.size(); ++lane)
      os << "<path fill=\"#f7f7f7\" d=\"M" << left << ' '
         << rowTop + heights.head + heights.main + int64_t(lane) * heights.lane + 1 << 'h' << scale.width << 'v'
         << heights.lane - 1 << "H" << left << "z\"/>\n";
  }
  printTimeAxis(os, scale, left, top, bottom, /*isGrid=*/true);
  for (auto [row, rowTop] : llvm::zip(rows, tops))
    printRow(os, row, rowTop);
  if (cuts)
    page.printText(SvgPage::margin, tops[rows.size() / 2] - 8, "...");
  printTimeAxis(os, scale, left, bottom - heights.gap + 3, bottom, /*isGrid=*/false);
  page.print(out);
}

void stage::printSvg(llvm::raw_ostream &os, const StepTimeline &timeline, TimelineWindow window,
                     const PictureFrame &frame) {
  Painter(timeline, window, frame).print(os);
}
