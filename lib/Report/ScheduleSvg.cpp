//===- ScheduleSvg.cpp - schedules as SVG ---------------------------------===//
#include "LaneBoxes.h"
#include "PhaseLook.h"
#include "Svg.h"
#include "stage/Report/SchedulePicture.h"
#include "stage/Support/Table.h"

using namespace stage;

namespace stage {

class ScheduleSvg {
public:
  ScheduleSvg(const SchedulePicture &picture, TimelineWindow drawn, const PictureFrame &frame)
      : picture(picture), schedule(picture.schedule), drawn(drawn), stages(picture.listShownStages()),
        page(frame.width), title(frame.title) {}
  void print(llvm::raw_ostream &os);

private:
  /// Some time of all stages.
  struct Panel {
    TimelineWindow window;
    int64_t rowHeight, boxHeight;
    int64_t fontSize; ///< Of labels; 0: there are none.
    bool hasShares;   ///< Idle time is said behind each row.
  };
  int64_t getSpan() const { return drawn.to - drawn.from; }
  /// The letters of a label that a picture cannot do without: those of the largest number of a microbatch.
  int64_t getLabelWidth(int64_t fontSize) const {
    return estimateWidth(std::to_string(std::max(1u, schedule.microbatches) - 1), fontSize) + LaneBoxes::labelMargin;
  }
  /// How much time has so many pixels if labels can be read.
  int64_t getReadable(int64_t fontSize) const {
    return int64_t(__int128(plotWidth) * picture.step / getLabelWidth(fontSize));
  }
  std::string getLabel(const Unit &unit, const Panel &panel) const;
  /// All labels have room for the chunk, too.
  bool showsChunks(const Panel &panel) const {
    __int128 pixels = __int128(plotWidth) * picture.step / (panel.window.to - panel.window.from);
    std::string longest(picture.getLabelSize() - 1, '0'); // without the letter of the kind
    return schedule.chunks > 1 && estimateWidth(longest, panel.fontSize) + LaneBoxes::labelMargin <= pixels;
  }
  /// Of later chunks lighter ones.
  const char *getFill(const Unit &unit);
  void addHeading();
  void addPanel(const Panel &panel);
  void addRow(const Panel &panel, unsigned stage, int64_t top);
  /// Marks where the panels below stand in the first one, and what repeats.
  void addMarks(llvm::ArrayRef<TimelineWindow> details, const std::optional<EqualRun> &run);
  void printMark(const TimeScale &scale, TimelineWindow marked, int64_t top, llvm::StringRef text);
  void printTimeAxis(const TimeScale &scale, int64_t top);
  std::vector<TimelineWindow> chooseDetails(int64_t length, const std::optional<EqualRun> &run) const;

  const SchedulePicture &picture;
  const Schedule &schedule;
  TimelineWindow drawn;
  std::vector<unsigned> stages;
  SvgPage page;
  std::string title;
  int64_t left = 0, plotWidth = 0;
  std::map<std::pair<PhaseKind, unsigned>, std::string> fills;
};

} // namespace stage

/// A colour with so many hundredths of white.
static std::string lighten(llvm::StringRef fill, unsigned hundredths) {
  std::string text = "#";
  for (size_t channel = 0; channel < 3; ++channel) {
    unsigned value = 0;
    fill.substr(1 + 2 * channel, 2).getAsInteger(16, value);
    value += (255 - value) * hundredths / 100;
    for (unsigned digit : {value / 16, value % 16})
      text += "0123456789abcdef"[digit];
  }
  return text;
}

/// `a`, `b`, `c`.
static std::string getPanelName(size_t number) { return std::string(1, char('a' + number)); }

const char *ScheduleSvg::getFill(const Unit &unit) {
  constexpr unsigned mostWhite = 60;
  auto [found, isNew] = fills.try_emplace({unit.kind, unit.chunk});
  if (isNew)
    found->second = isOncePerStep(unit.kind) || schedule.chunks == 1
                        ? stage::getFill(unit.kind)
                        : lighten(stage::getFill(unit.kind), unit.chunk * mostWhite / (schedule.chunks - 1));
  return found->second.c_str();
}

/// `12.1`, or `12`. The colour says what kind it is, and of which chunk.
std::string ScheduleSvg::getLabel(const Unit &unit, const Panel &panel) const {
  if (isOncePerStep(unit.kind))
    return "S";
  std::string microbatch = std::to_string(unit.microbatch);
  return showsChunks(panel) ? microbatch + "." + std::to_string(unit.chunk) : microbatch;
}

void ScheduleSvg::addHeading() {
  page.addTitle(title);
  page.addLine(picture.getSummary());
  if (std::string text = picture.describeDrawn(drawn); !text.empty())
    page.addLine(text);
  if (stages.size() < schedule.stages)
    page.addLine("drawn are the first and the last " + std::to_string(stages.size() / 2) + " of " +
                 formatCount(schedule.stages) + " stages");
  std::vector<LegendEntry> legend;
  for (auto [kind, time] : picture.getKinds())
    legend.push_back({stage::getFill(kind),
                      describeKind(kind) + (picture.hasUnit() && time ? " (" + formatCount(*time) + ")" : "")});
  legend.push_back({idleFill, "idle"});
  page.addLegend(legend);
  page.addLine(schedule.chunks > 1 ? "numbers: microbatch, or microbatch.chunk; the lighter, the later the chunk"
                                   : "numbers: microbatches");
}

void ScheduleSvg::addRow(const Panel &panel, unsigned stage, int64_t top) {
  TimeScale scale = {panel.window.from, panel.window.to, plotWidth};
  page.printRect(left, top, plotWidth, panel.boxHeight, idleFill);
  LaneBoxes boxes(scale);
  for (size_t position = 0; position < schedule.units[stage].size(); ++position) {
    const Unit &unit = schedule.units[stage][position];
    int64_t begin = picture.times.start[stage][position], end = begin + picture.durations[stage][position];
    boxes.add(getFill(unit), begin, end, [&]() -> LaneBoxes::Text {
      if (!panel.fontSize)
        return {};
      return {{getLabel(unit, panel)},
              picture.getLabel(unit) + ": from " + picture.formatTime(begin) + " to " + picture.formatTime(end)};
    });
  }
  LaneBoxes::Place place = {left, top, panel.boxHeight, panel.fontSize};
  boxes.printBoxes(page.getStream(), place, /*isFramed=*/panel.fontSize > 0);
  if (panel.fontSize)
    boxes.printLabels(page.getStream(), place);
  int64_t baseline = top + panel.boxHeight / 2 + 4;
  SvgPage::Style style;
  style.size = std::min<int64_t>(SvgPage::textSize, panel.boxHeight);
  page.printText(SvgPage::margin, baseline, "stage " + std::to_string(stage), style);
  if (panel.hasShares)
    page.printText(left + plotWidth + 6, baseline,
                   formatPercent(picture.times.getBubble(stage), picture.times.makespan) + " %", style);
}

void ScheduleSvg::addPanel(const Panel &panel) {
  if (panel.hasShares) {
    SvgPage::Style style;
    style.size = 11;
    style.fill = "#555";
    page.printText(left + plotWidth + 6, page.getTop() - 4, "idle", style);
  }
  for (size_t row = 0; row < stages.size(); ++row) {
    if (row > 0 && stages[row] != stages[row - 1] + 1)
      page.printText(SvgPage::margin, page.addPlace(panel.rowHeight) + panel.boxHeight / 2, "...");
    addRow(panel, stages[row], page.addPlace(panel.rowHeight));
  }
  printTimeAxis({panel.window.from, panel.window.to, plotWidth}, page.addPlace(26));
}

/// Ticks at round numbers of units of time, or percents, some 40 pixels apart or more.
void ScheduleSvg::printTimeAxis(const TimeScale &scale, int64_t top) {
  llvm::raw_ostream &os = page.getStream();
  constexpr int64_t minDistance = 40;
  // Of what has no unit a percent is one.
  int64_t whole = picture.hasUnit() ? 1 : picture.times.makespan, parts = picture.hasUnit() ? 1 : 100;
  auto getTime = [&](int64_t number) { return int64_t(__int128(number) * whole / parts); };
  int64_t distance = 1;
  for (unsigned step = 0; __int128(getTime(distance)) * scale.width < __int128(scale.to - scale.from) * minDistance;
       ++step)
    distance = step % 3 == 1 ? distance / 2 * 5 : distance * 2;
  os << "<g text-anchor=\"middle\" fill=\"#555\" font-size=\"11\">\n";
  for (int64_t number = 0; getTime(number) <= scale.to; number += distance) {
    int64_t time = getTime(number);
    if (time < scale.from)
      continue;
    std::string x = toPixels(left * TimeScale::perPixel + scale.at(time));
    os << "<path d=\"M" << x << ' ' << top - 2 << "v5\" stroke=\"#555\"/><text x=\"" << x << "\" y=\"" << top + 14
       << "\">" << number << (picture.hasUnit() ? "" : " %") << "</text>\n";
  }
  os << "</g>\n";
  if (picture.hasUnit()) {
    SvgPage::Style style;
    style.size = 11;
    style.fill = "#555";
    page.printText(SvgPage::margin, top + 14, "time", style);
  }
}

/// `|---- text ----|` over the first panel.
void ScheduleSvg::printMark(const TimeScale &scale, TimelineWindow marked, int64_t top, llvm::StringRef text) {
  int64_t begin = left * TimeScale::perPixel + scale.at(std::max(marked.from, scale.from)),
          end = left * TimeScale::perPixel + scale.at(std::min(marked.to, scale.to));
  page.getStream() << "<path fill=\"none\" stroke=\"#555\" d=\"M" << toPixels(begin) << ' ' << top + 18 << "v-4H"
                   << toPixels(end) << "v4\"/>\n";
  SvgPage::Style style;
  style.size = 11;
  style.anchor = SvgPage::Anchor::Middle;
  // Inside of the plot, where the marked time is short.
  int64_t half = estimateWidth(text, style.size) / 2, middle = (begin + end) / 2 / TimeScale::perPixel;
  page.printText(std::clamp(middle, left + half, left + plotWidth - half), top + 10, text, style);
}

void ScheduleSvg::addMarks(llvm::ArrayRef<TimelineWindow> details, const std::optional<EqualRun> &run) {
  TimeScale scale = {drawn.from, drawn.to, plotWidth};
  if (run) {
    std::string text = "the same " + formatCount(run->count) + " times";
    if (picture.hasUnit())
      text = formatCount(run->count) + " times the same " + formatCount(run->period) + " units of time";
    printMark(scale, {run->begin, run->getEnd()}, page.addPlace(20), text);
  }
  int64_t top = page.addPlace(20);
  for (size_t number = 0; number < details.size(); ++number)
    printMark(scale, details[number], top, getPanelName(number));
}

/// Times that can be read, so long each: the beginning, the end, and one of those that repeat, if they are in neither.
std::vector<TimelineWindow> ScheduleSvg::chooseDetails(int64_t length, const std::optional<EqualRun> &run) const {
  std::vector<TimelineWindow> details = {{drawn.from, drawn.from + length}};
  if (run) {
    int64_t begin = std::max(run->begin, drawn.from), end = std::min(run->getEnd(), drawn.to);
    if (begin + run->period > drawn.from + length && begin < drawn.to - length && end - begin >= run->period)
      details.push_back({begin, std::min(begin + length, drawn.to)});
  }
  details.push_back({std::max(drawn.to - length, details.back().to), drawn.to});
  return details;
}

void ScheduleSvg::print(llvm::raw_ostream &os) {
  left = SvgPage::margin + 8 + estimateWidth("stage " + std::to_string(schedule.stages - 1), SvgPage::textSize);
  plotWidth = page.getWidth() - left - 6 - estimateWidth("99.99 %", SvgPage::textSize) - SvgPage::margin;
  addHeading();
  page.addGap(20);
  // Heights by the number of rows, so that a picture fits on a page.
  bool isTall = stages.size() > 16;
  constexpr int64_t large = 12, small = 9;
  Panel panel = {drawn, isTall ? 20 : 26, isTall ? 17 : 22, large, true};
  if (getSpan() > getReadable(large)) {
    panel.fontSize = small;
    panel.rowHeight = isTall ? 14 : 18;
    panel.boxHeight = isTall ? 12 : 15;
  }
  if (getSpan() <= getReadable(small)) {
    addPanel(panel);
    page.print(os);
    return;
  }
  std::optional<EqualRun> run = findEqualRun(schedule, picture.times, picture.durations);
  if (run && (run->getEnd() <= drawn.from || run->begin >= drawn.to))
    run.reset();
  std::vector<TimelineWindow> details = chooseDetails(std::max<int64_t>(1, getReadable(small)), run);
  page.addGap(-16);
  addMarks(details, run);
  addPanel(Panel{drawn, isTall ? 10 : 15, isTall ? 8 : 12, /*fontSize=*/0, true});
  for (size_t number = 0; number < details.size(); ++number) {
    const TimelineWindow &window = details[number];
    page.addLine(getPanelName(number) + ": from " + picture.formatTime(window.from) + " to " +
                 picture.formatTime(window.to));
    page.addGap(6);
    addPanel(Panel{window, panel.rowHeight, panel.boxHeight, small, false});
  }
  page.print(os);
}

void SchedulePicture::printSvg(llvm::raw_ostream &os, TimelineWindow drawn, const PictureFrame &frame) const {
  ScheduleSvg(*this, drawn, frame).print(os);
}
