//===- FrontPicture.cpp - plans by two figures, as a picture --------------===//
#include "stage/Report/FrontPicture.h"
#include "ShortNumbers.h"
#include "Svg.h"
#include "stage/Support/Escape.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace stage;

namespace {
/// A part of the picture, in pixels.
struct Box {
  double left, top, right, bottom;
  bool overlaps(const Box &other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool contains(double x, double y) const { return left <= x && x <= right && top <= y && y <= bottom; }
  bool isWithin(const Box &other) const {
    return other.left <= left && right <= other.right && other.top <= top && bottom <= other.bottom;
  }
};

/// Numbers along an axis. All are of the unit that is shown.
struct Scale {
  Scale(const FrontAxis &axis, double least, double most);
  double toUnit(double value) const { return value / unit; }
  std::string format(double tick) const;
  std::string unitName;
  double unit = 1; ///< Of what is shown, in seconds or bytes.
  double low = 0, high = 1;
  double between = 1; ///< Two ticks, which are multiples of it.
  int64_t firstTick = 0, lastTick = 0;
  int digits = 0;
};

class Painter {
public:
  Painter(const FrontPicture &picture, const PictureFrame &frame);
  void print(llvm::raw_ostream &os);

private:
  double toX(double value) const {
    return plot.left + (x.toUnit(value) - x.low) / (x.high - x.low) * (plot.right - plot.left);
  }
  double toY(double value) const {
    return plot.bottom - (y.toUnit(value) - y.low) / (y.high - y.low) * (plot.bottom - plot.top);
  }
  void printAxes();
  void printPlans();
  void printLabel(const FrontPoint &point);
  double findCost(const Box &box) const;

  const FrontPicture &picture;
  SvgPage page;
  std::string title;
  Scale x, y;
  Box plot = {};
  std::vector<Box> lines, labels; ///< The front, and labels that have a place.
  /// `tp 2, zero 1: step 12.3 ms, memory 5.10 GiB`
  std::string describe(const FrontPoint &point) const;
  std::vector<std::string> unplaced;
};
} // namespace

static std::string formatPixels(double pixels) { return toPixels(int64_t(std::llround(pixels * 1000))); }

static std::pair<double, std::string> findUnit(FrontAxis::Quantity quantity, double most) {
  constexpr double ki = 1024, milli = 1e-3, micro = 1e-6;
  switch (quantity) {
  case FrontAxis::Quantity::Seconds:
    return most >= 1 ? std::pair(1.0, "s") : most >= milli ? std::pair(milli, "ms") : std::pair(micro, "us");
  case FrontAxis::Quantity::Bytes:
    return most >= ki * ki * ki ? std::pair(ki * ki * ki, "GiB")
           : most >= ki * ki    ? std::pair(ki * ki, "MiB")
                                : std::pair(ki, "KiB");
  case FrontAxis::Quantity::Share:
    return {0.01, "%"};
  case FrontAxis::Quantity::Tokens:
    return {1.0, "tokens/s"};
  case FrontAxis::Quantity::Joules:
    return most >= 1 / milli ? std::pair(1 / milli, "kJ") : std::pair(1.0, "J");
  case FrontAxis::Quantity::Dollars:
    return {1.0, "$"};
  }
  return {1.0, ""};
}

/// Ticks stand at multiples of 1, 2 or 5 times a power of ten. Some space is left on both sides.
Scale::Scale(const FrontAxis &axis, double least, double most) {
  std::tie(unit, unitName) = findUnit(axis.quantity, most);
  constexpr double wantedTicks = 6, ten = 10;
  low = least / unit;
  high = most / unit;
  double size = high - low;
  if (size <= 0)
    size = high > 0 ? high / ten : 1;
  low = std::max(0.0, low - size / ten);
  high += size / ten;
  double power = std::pow(ten, std::floor(std::log10((high - low) / wantedTicks)));
  for (double factor : {1.0, 2.0, 5.0, ten}) {
    between = factor * power;
    if ((high - low) / between <= wantedTicks)
      break;
  }
  firstTick = int64_t(std::ceil(low / between - 1e-9));
  lastTick = int64_t(std::floor(high / between + 1e-9));
  digits = std::max(0, int(-std::floor(std::log10(between) + 1e-9)));
}

std::string Scale::format(double tick) const {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, tick);
  // Digits in groups of three, as in all reports.
  size_t end = std::min(text.find('.'), text.size());
  for (size_t place = end; place > 3; place -= 3)
    text.insert(place - 3, ",");
  return text;
}

static Scale makeScale(const FrontPicture &picture, bool isX) {
  const FrontPoint &front = picture.front.front();
  double least = isX ? front.x : front.y, most = least;
  auto add = [&](double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  };
  for (const FrontPoint &point : picture.front)
    add(isX ? point.x : point.y);
  for (const auto &[x, y] : picture.others)
    add(isX ? x : y);
  return Scale(isX ? picture.x : picture.y, least, most);
}

Painter::Painter(const FrontPicture &picture, const PictureFrame &frame)
    : picture(picture), page(frame.width), title(frame.title), x(makeScale(picture, true)),
      y(makeScale(picture, false)) {}

static std::string shorten(FrontAxis::Quantity quantity, double value) {
  switch (quantity) {
  case FrontAxis::Quantity::Seconds:
    return shortenTime(Ticks(value * double(ticksPerSecond)));
  case FrontAxis::Quantity::Bytes:
    return shortenBytes(value);
  case FrontAxis::Quantity::Share:
    return shortenShare(value);
  case FrontAxis::Quantity::Joules:
    return shortenJoules(value);
  case FrontAxis::Quantity::Tokens:
  case FrontAxis::Quantity::Dollars:
    break;
  }
  return value < 1000 ? shortenDigits(value) : shortenCount(value);
}

std::string Painter::describe(const FrontPoint &point) const {
  return point.text + (point.text.empty() ? "" : ": ") + picture.x.title + " " + shorten(picture.x.quantity, point.x) +
         ", " + picture.y.title + " " + shorten(picture.y.quantity, point.y);
}

static std::string describeAxis(const FrontAxis &axis, const Scale &scale) {
  return axis.title + ", " + scale.unitName + (axis.isMost ? " (more is better)" : "");
}

void Painter::printAxes() {
  constexpr int64_t height = 16;
  int64_t left = 0;
  for (int64_t i = y.firstTick; i <= y.lastTick; ++i)
    left = std::max(left, estimateWidth(y.format(double(i) * y.between), SvgPage::textSize));
  page.printText(SvgPage::margin, page.addPlace(height) + 12, describeAxis(picture.y, y));
  page.addGap(6);
  // The widest tick of the other axis may reach beyond the plot.
  int64_t right = estimateWidth(x.format(double(x.lastTick) * x.between), SvgPage::textSize) / 2 + 4;
  int64_t plotHeight = std::max<int64_t>(page.getWidth() * 11 / 20, 320), top = page.addPlace(plotHeight);
  plot = {double(SvgPage::margin + left + 8), double(top), double(page.getWidth() - SvgPage::margin - right),
          double(top + plotHeight)};
  llvm::raw_ostream &os = page.getStream();
  auto addLine = [&](double x1, double y1, double x2, double y2) {
    os << "<line x1=\"" << formatPixels(x1) << "\" y1=\"" << formatPixels(y1) << "\" x2=\"" << formatPixels(x2)
       << "\" y2=\"" << formatPixels(y2) << "\" stroke=\"#e4e4e4\"/>\n";
  };
  using Anchor = SvgPage::Anchor;
  for (int64_t i = y.firstTick; i <= y.lastTick; ++i) {
    double tick = double(i) * y.between, place = toY(tick * y.unit);
    addLine(plot.left, place, plot.right, place);
    page.printText(int64_t(plot.left) - 6, int64_t(place) + 4, y.format(tick), {SvgPage::textSize, Anchor::End});
  }
  os << "<rect x=\"" << int64_t(plot.left) << "\" y=\"" << int64_t(plot.top) << "\" width=\""
     << int64_t(plot.right - plot.left) << "\" height=\"" << plotHeight
     << "\" fill=\"none\" stroke=\"#888\" stroke-width=\".5\"/>\n";
  int64_t ticks = page.addPlace(height + 4);
  for (int64_t i = x.firstTick; i <= x.lastTick; ++i) {
    double tick = double(i) * x.between, place = toX(tick * x.unit);
    addLine(place, plot.top, place, plot.bottom);
    page.printText(int64_t(place), ticks + 14, x.format(tick), {SvgPage::textSize, Anchor::Middle});
  }
  page.printText(int64_t(plot.right + plot.left) / 2, page.addPlace(SvgPage::lineHeight) + 12,
                 describeAxis(picture.x, x), {SvgPage::textSize, Anchor::Middle});
}

constexpr const char *frontFill = "#c9564f", *otherFill = "#c4c4c4";

void Painter::printPlans() {
  llvm::raw_ostream &os = page.getStream();
  for (const auto &[pointX, pointY] : picture.others)
    os << "<circle cx=\"" << formatPixels(toX(pointX)) << "\" cy=\"" << formatPixels(toY(pointY))
       << "\" r=\"3\" fill=\"" << otherFill << "\"/>\n";
  // From a plan the line goes to where the next one is as good in x, and from there to it.
  os << "<polyline fill=\"none\" stroke=\"" << frontFill << "\" stroke-width=\"1.5\" points=\"";
  for (size_t i = 0; i != picture.front.size(); ++i) {
    const FrontPoint &point = picture.front[i];
    double endX = toX(point.x), endY = toY(point.y);
    if (i) {
      double beginX = toX(picture.front[i - 1].x), beginY = toY(picture.front[i - 1].y);
      os << formatPixels(endX) << ',' << formatPixels(beginY) << ' ';
      lines.push_back({std::min(beginX, endX), beginY - 1, std::max(beginX, endX), beginY + 1});
      lines.push_back({endX - 1, std::min(beginY, endY), endX + 1, std::max(beginY, endY)});
    }
    os << formatPixels(endX) << ',' << formatPixels(endY) << ' ';
  }
  os << "\"/>\n";
  for (const FrontPoint &point : picture.front) {
    double centerX = toX(point.x), centerY = toY(point.y);
    constexpr double radius = 4;
    lines.push_back({centerX - radius, centerY - radius, centerX + radius, centerY + radius});
    os << "<circle cx=\"" << formatPixels(centerX) << "\" cy=\"" << formatPixels(centerY) << "\" r=\"4\" fill=\""
       << frontFill << "\"><title>" << escapeXml(describe(point)) << "</title></circle>\n";
  }
  for (const FrontPoint &point : picture.front)
    printLabel(point);
}

/// What a label there would hide: none of the front, no other label, and as few plans as possible.
double Painter::findCost(const Box &box) const {
  constexpr double none = 1e9;
  if (!box.isWithin(plot))
    return none;
  auto isHidden = [&](const Box &other) { return box.overlaps(other); };
  if (llvm::any_of(labels, isHidden) || llvm::any_of(lines, isHidden))
    return none;
  double cost = 0;
  for (const auto &[pointX, pointY] : picture.others)
    cost += box.contains(toX(pointX), toY(pointY));
  return cost;
}

void Painter::printLabel(const FrontPoint &point) {
  constexpr int64_t size = 11, height = 13, widest = 170;
  constexpr double near = 7, far = 30;
  std::vector<std::string> rows = wrapText(point.label, widest, size);
  int64_t width = 0;
  for (const std::string &row : rows)
    width = std::max(width, estimateWidth(row, size));
  double wide = double(width), high = double(height * int64_t(rows.size())), centerX = toX(point.x),
         centerY = toY(point.y), bestCost = 1e9;
  Box best = {};
  bool isEnd = false, isBelow = false, isFar = false; ///< The text ends at the point, and so on.
  // The side without plans first: left if less is better, and down.
  static constexpr std::pair<bool, bool> sides[] = {{true, true}, {false, true}, {true, false}, {false, false}};
  for (double distance : {near, far / 2, far})
    for (auto [isFreeX, isFreeY] : sides) {
      bool toLeft = isFreeX != picture.x.isMost, isDown = isFreeY != picture.y.isMost;
      double left = toLeft ? centerX - distance - wide : centerX + distance;
      double top = isDown ? centerY + distance / 2 : centerY - distance / 2 - high;
      Box box = {left, top, left + wide, top + high};
      // Far labels are less clear than a few plans that are hidden.
      double cost = findCost(box) + (distance - near) / 4;
      if (cost < bestCost) {
        bestCost = cost;
        best = box;
        isEnd = toLeft;
        isBelow = isDown;
        isFar = distance > near;
      }
    }
  if (bestCost >= 1e9) {
    unplaced.push_back(describe(point));
    return;
  }
  labels.push_back(best);
  llvm::raw_ostream &os = page.getStream();
  if (isFar)
    os << "<line x1=\"" << formatPixels(centerX) << "\" y1=\"" << formatPixels(centerY) << "\" x2=\""
       << formatPixels(isEnd ? best.right : best.left) << "\" y2=\"" << formatPixels(isBelow ? best.top : best.bottom)
       << "\" stroke=\"#666\" stroke-width=\".5\"/>\n";
  os << "<rect x=\"" << int64_t(best.left) << "\" y=\"" << int64_t(best.top) << "\" width=\"" << width << "\" height=\""
     << int64_t(high) << "\" fill=\"#fff\" fill-opacity=\".75\"/>\n";
  for (size_t row = 0; row != rows.size(); ++row)
    page.printText(int64_t(isEnd ? best.right : best.left), int64_t(best.top) + int64_t(row) * height + 10, rows[row],
                   {size, isEnd ? SvgPage::Anchor::End : SvgPage::Anchor::Start, "#333"});
}

void Painter::print(llvm::raw_ostream &os) {
  page.addTitle(title);
  for (const std::string &line : picture.lines)
    page.addLine(line);
  std::vector<LegendEntry> legend = {{frontFill, "no other plan is better in both"}};
  if (!picture.others.empty())
    legend.push_back({otherFill, "other plans that fit"});
  page.addLegend(legend);
  page.addGap(6);
  printAxes();
  printPlans();
  if (!unplaced.empty()) {
    page.addGap(4);
    page.addLine("without a label, because there is no room:");
    for (const std::string &text : unplaced)
      page.addLine(text);
  }
  page.addGap(8);
  page.print(os);
}

void stage::printFront(llvm::raw_ostream &os, const FrontPicture &picture, const PictureFrame &frame) {
  Painter(picture, frame).print(os);
}
