//===- MemoryPicture.cpp - memory over a step, as SVG ---------------------===//
//
// Each column of pixels shows the node that holds most in its time, and what that node holds by class, so that no peak
// is lost however narrow it is. Columns with the same bytes are one piece of a path.
//
//===----------------------------------------------------------------------===//
#include "LaneBoxes.h"
#include "MemoryCurve.h"
#include "MemoryLook.h"
#include "Svg.h"
#include "stage/Machine/TimeText.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Table.h"

using namespace stage;

namespace {
constexpr int64_t textSize = SvgPage::textSize, smallSize = 10;

class Columns : public MemoryCurve {
public:
  Columns(const MemoryTimeline &timeline, const StageMemory &stage, const TimeScale &scale)
      : MemoryCurve(timeline, stage), scale(scale), uses(scale.width), totals(scale.width, -1) {}

  std::string name;
  ByteCount peak = 0;
  int64_t peakColumn = 0;
  std::string peakName;
  void print(llvm::raw_ostream &os, int64_t left, int64_t top, int64_t height, ByteCount most) const;

private:
  int64_t getColumn(Ticks time) const {
    Ticks inside = std::clamp(time, scale.from, scale.to);
    return std::min(scale.at(inside) / TimeScale::perPixel, scale.width - 1);
  }
  void take(int64_t column, const MemoryUse &use, ByteCount total) {
    if (total <= totals[column])
      return;
    totals[column] = total;
    uses[column] = use;
  }
  void finish(Ticks end, const MemoryUse &use) override {
    for (int64_t column = getColumn(end); column < scale.width && end < scale.to; ++column)
      take(column, use, use.getTotal());
  }
  void show(const Moment &moment) override {
    if (!isInWindow(last, std::max(moment.end, last + 1)) && !isInWindow(moment.begin, moment.end + 1))
      return void(last = moment.end);
    ByteCount total = moment.use.getTotal(), rest = moment.rest.getTotal();
    int64_t first = getColumn(moment.begin);
    for (int64_t column = getColumn(last); column < first && last < moment.begin; ++column)
      take(column, moment.rest, rest);
    last = moment.end;
    if (!isInWindow(moment.begin, moment.end + 1))
      return;
    for (int64_t column = first, end = getColumn(std::max(moment.begin, moment.end - 1)); column <= end; ++column)
      take(column, moment.use, total);
    if (total <= peak)
      return;
    peak = total;
    peakColumn = first;
    peakName = getUnitName(moment.place.unit) + ": " + describeNode(moment.place);
    if (moment.place.iteration >= 0)
      peakName += ", iteration " + std::to_string(moment.place.iteration);
  }

  TimeScale scale;
  std::vector<MemoryUse> uses; ///< By column.
  std::vector<ByteCount> totals;
  Ticks last = 0;
};

class Painter {
public:
  Painter(const MemoryTimeline &timeline, const PictureFrame &frame)
      : timeline(timeline), title(frame.title), width(frame.width) {}
  void collect(DiagnosticEngine &diags);
  void print(llvm::raw_ostream &os) const;

private:
  static constexpr size_t maxRows = 64;
  std::vector<std::string> describe() const;
  std::vector<LegendEntry> listLegend() const;
  void printByteAxis(llvm::raw_ostream &os, int64_t top) const;
  const Columns &getWorst() const {
    return *std::max_element(rows.begin(), rows.end(),
                             [](const Columns &a, const Columns &b) { return a.peak < b.peak; });
  }

  const MemoryTimeline &timeline;
  const std::string &title;
  int64_t width, left = 0, height = 0;
  static constexpr int64_t right = 96;
  TimeScale scale = {0, 1, 1};
  ByteCount most = 1;       ///< At the top of a row.
  bool hasCapacity = false; ///< That is drawn.
  std::deque<Columns> rows;
};
} // namespace

/// Of a height, in tenths of a pixel.
static int64_t scaleBytes(ByteCount bytes, int64_t height, ByteCount most) {
  return int64_t((bytes * height * 20 + most) / (most * 2));
}

static std::string printTenths(int64_t tenths) { return (tenths < 0 ? "-" : "") + toPixels(std::abs(tenths) * 100); }

void Columns::print(llvm::raw_ostream &os, int64_t left, int64_t top, int64_t height, ByteCount most) const {
  std::vector<ByteCount> floors(uses.size(), 0);
  int64_t bottom = (top + height) * 10;
  for (const MemoryLook &layer : memoryLooks) {
    if (llvm::all_of(uses, [&](const MemoryUse &use) { return use[layer.kind] == 0; }))
      continue;
    std::vector<int64_t> low, high;
    for (auto [use, floor] : llvm::zip(uses, floors)) {
      low.push_back(bottom - scaleBytes(floor, height, most));
      floor += use[layer.kind];
      high.push_back(bottom - scaleBytes(floor, height, most));
    }
    os << "<path fill=\"" << layer.fill << "\" d=\"M" << left << ' ' << printTenths(low.front());
    // Relative, which is shorter.
    int64_t y = low.front(), run = 0;
    auto go = [&](int64_t to) {
      if (to == y)
        return;
      if (run)
        os << 'h' << run;
      os << 'v' << printTenths(to - y);
      y = to;
      run = 0;
    };
    for (int64_t edge : high) {
      go(edge);
      ++run;
    }
    os << 'h' << std::exchange(run, 0);
    for (int64_t edge : llvm::reverse(low)) {
      go(edge);
      --run;
    }
    os << "z\"/>\n";
  }
  int64_t y = bottom - scaleBytes(peak, height, most);
  os << "<circle cx=\"" << left + peakColumn << "\" cy=\"" << printTenths(y)
     << "\" r=\"3\" fill=\"none\" stroke=\"#000\"><title>" << escapeXml(peakName + ": " + formatBytes(peak))
     << "</title></circle>\n";
}

void Painter::collect(DiagnosticEngine &diags) {
  const std::vector<StageMemory> &stages = timeline.report->stages;
  for (const StageMemory &stage : stages)
    most = std::max(most, stage.peak.getTotal());
  // A capacity far above all peaks would press them to the ground.
  hasCapacity = timeline.capacity && most * 2 >= timeline.capacity;
  if (hasCapacity)
    most = std::max(most, ByteCount(timeline.capacity));
  most += most / 20;
  left = 16 + estimateWidth("stage 100  ", textSize) + estimateWidth("100 GiB", smallSize);
  scale = {timeline.window.from, timeline.window.to, width - left - right};
  for (size_t number = 0; number < stages.size(); ++number) {
    if (stages.size() > maxRows && number >= maxRows / 2 && stages.size() - number > maxRows / 2)
      continue;
    Columns &row = rows.emplace_back(timeline, stages[number], scale);
    row.name = "stage " + std::to_string(stages[number].stage);
    row.walk(diags);
  }
  height = rows.size() <= 2 ? 220 : rows.size() <= 4 ? 130 : rows.size() <= 8 ? 80 : rows.size() <= 16 ? 52 : 32;
}

std::vector<std::string> Painter::describe() const {
  std::vector<std::string> lines = {"memory of a rank over a step"};
  if (timeline.step)
    lines.front() += " of " + formatTime(timeline.step->getStep()) + " on " + timeline.step->getMachine() +
                     ", runtime " + timeline.step->getRuntime();
  const Columns &worst = getWorst();
  lines.push_back("most: " + formatBytes(worst.peak) + " on " + worst.name + ", at " + worst.peakName);
  if (!timeline.step)
    lines.push_back("without a machine each op takes as long as any other");
  else if (timeline.window.from > 0 || timeline.window.to < timeline.step->getStep())
    lines.push_back("drawn is the time from " + formatTime(timeline.window.from) + " to " +
                    formatTime(timeline.window.to) + ", and the peak is that of this time");
  if (rows.size() < timeline.report->stages.size())
    lines.push_back("drawn are the first and the last " + std::to_string(rows.size() / 2) + " of " +
                    formatCount(timeline.report->stages.size()) + " stages");
  return lines;
}

/// Classes of which some rank holds something, the uppermost first.
std::vector<LegendEntry> Painter::listLegend() const {
  std::vector<LegendEntry> entries;
  for (const MemoryLook &layer : llvm::reverse(memoryLooks))
    if (llvm::any_of(timeline.report->stages, [&](const StageMemory &stage) {
          return stage.peak[layer.kind] != 0 ||
                 llvm::any_of(stage.moments, [&](auto &moment) { return moment.peak[layer.kind] != 0; });
        }))
      entries.push_back({layer.fill, layer.text});
  return entries;
}

/// Lines at round numbers of bytes, 24 pixels apart or more, and the capacity.
void Painter::printByteAxis(llvm::raw_ostream &os, int64_t top) const {
  ByteCount distance = 1;
  while (scaleBytes(distance, height, most) < 240)
    distance *= 2;
  int64_t bottom = (top + height) * 10;
  for (ByteCount bytes = 0; bytes < most; bytes += distance) {
    std::string y = printTenths(bottom - scaleBytes(bytes, height, most));
    os << "<path stroke=\"#ddd\" d=\"M" << left << ' ' << y << 'h' << scale.width << "\"/>";
    std::string text = bytes ? formatBytes(bytes) : "0";
    if (size_t zeros = text.find(".00 "); zeros != std::string::npos)
      text.erase(zeros, 3);
    os << "<text text-anchor=\"end\" font-size=\"" << smallSize << "\" fill=\"#555\" x=\"" << left - 4 << "\" y=\""
       << printTenths(bottom - scaleBytes(bytes, height, most) + smallSize * 3) << "\">" << text << "</text>\n";
  }
}

void Painter::print(llvm::raw_ostream &out) const {
  SvgPage page(width);
  page.addTitle(title);
  for (const std::string &line : describe())
    page.addLine(line);
  page.addLegend(listLegend());
  page.addGap(10);
  llvm::raw_ostream &os = page.getStream();
  page.printText(left + scale.width + 6, page.getTop() - 4, "peak", {smallSize, SvgPage::Anchor::Start, "#555"});
  constexpr int64_t gap = 12;
  for (const Columns &row : rows) {
    int64_t y = page.addPlace(height + gap);
    printByteAxis(os, y);
    row.print(os, left, y, height, most);
    if (hasCapacity) {
      std::string at = printTenths((y + height) * 10 - scaleBytes(timeline.capacity, height, most));
      os << "<path stroke=\"#a00\" stroke-dasharray=\"6 4\" d=\"M" << left << ' ' << at << 'h' << scale.width
         << "\"/>\n";
      if (&row == &rows.front())
        os << "<text font-size=\"" << smallSize << "\" fill=\"#a00\" x=\"" << left + scale.width + 4 << "\" y=\"" << at
           << "\">capacity</text>\n";
    }
    page.printText(SvgPage::margin, y + height / 2 + 4, row.name);
    page.printText(left + scale.width + 6, y + height / 2 + 4, formatBytes(row.peak));
  }
  page.addGap(-gap);
  int64_t bottom = page.addPlace(28);
  if (timeline.step)
    printTimeAxis(os, scale, left, bottom, bottom, /*isGrid=*/false);
  else
    page.printText(left, bottom + 18, "ops in the order of the program", {textSize, SvgPage::Anchor::Start, "#555"});
  page.print(out);
}

void stage::printSvg(llvm::raw_ostream &os, const MemoryTimeline &timeline, const PictureFrame &frame,
                     DiagnosticEngine &diags) {
  Painter painter(timeline, frame);
  painter.collect(diags);
  painter.print(os);
}
