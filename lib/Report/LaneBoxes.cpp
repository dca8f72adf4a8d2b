//===- LaneBoxes.cpp - a line of boxes in a picture -----------------------===//
#include "LaneBoxes.h"
#include "Svg.h"
#include "stage/Machine/TimeText.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

void LaneBoxes::add(const char *fill, Ticks begin, Ticks end, llvm::function_ref<Text()> describe) {
  if (begin >= end || end <= scale.from || begin >= scale.to)
    return;
  int64_t left = scale.at(std::max(begin, scale.from)), right = scale.at(std::min(end, scale.to));
  if (right - left >= TimeScale::perPixel) {
    boxes.push_back({fill, left, right, describe()});
    return;
  }
  std::vector<int64_t> &pixels = covered[fill];
  pixels.resize(size_t(scale.width));
  for (int64_t at = left; at < right;) {
    int64_t next = std::min(right, (at / TimeScale::perPixel + 1) * TimeScale::perPixel);
    pixels[size_t(at / TimeScale::perPixel)] += next - at;
    at = next;
  }
}

/// `M12.5 40h3v22h-3z`.
static void printPath(llvm::raw_ostream &os, const LaneBoxes::Place &place, int64_t begin, int64_t end) {
  std::string width = toPixels(end - begin);
  os << 'M' << toPixels(place.left * TimeScale::perPixel + begin) << ' ' << place.top << 'h' << width << 'v'
     << place.height << "h-" << width << 'z';
}

void LaneBoxes::printBoxes(llvm::raw_ostream &os, const Place &place, bool isFramed) const {
  // Pixels from which a box has a frame, and says what it is where the mouse stands.
  constexpr int64_t minFramed = 4 * TimeScale::perPixel, quarters = 4;
  for (const auto &[fill, pixels] : covered)
    for (int64_t quarter = 1; quarter <= quarters; ++quarter) {
      auto isCovered = [&](int64_t amount) {
        return (amount * quarters + TimeScale::perPixel - 1) / TimeScale::perPixel == quarter;
      };
      bool isOpen = false;
      for (size_t pixel = 0; pixel < pixels.size();) {
        size_t end = pixel;
        while (end < pixels.size() && isCovered(pixels[end]))
          ++end;
        if (end == pixel) {
          ++pixel;
          continue;
        }
        if (!std::exchange(isOpen, true)) {
          os << "<path fill=\"" << fill << '"';
          if (quarter < quarters)
            os << " fill-opacity=\"." << quarter * 25 << '"';
          os << " d=\"";
        }
        printPath(os, place, int64_t(pixel) * TimeScale::perPixel, int64_t(end) * TimeScale::perPixel);
        pixel = end;
      }
      if (isOpen)
        os << "\"/>\n";
    }
  std::vector<llvm::StringRef> fills;
  for (const Box &box : boxes)
    if (!llvm::is_contained(fills, box.fill))
      fills.push_back(box.fill);
  llvm::sort(fills);
  for (llvm::StringRef fill : fills) {
    auto isNarrow = [&](const Box &box) {
      return box.fill == fill && (box.end - box.begin < minFramed || (!isFramed && box.text.hover.empty()));
    };
    if (llvm::any_of(boxes, isNarrow)) {
      os << "<path fill=\"" << fill << "\" d=\"";
      for (const Box &box : boxes)
        if (isNarrow(box))
          printPath(os, place, box.begin, box.end);
      os << "\"/>\n";
    }
    if (llvm::all_of(boxes, [&](const Box &box) { return box.fill != fill || isNarrow(box); }))
      continue;
    os << "<g fill=\"" << fill << (isFramed ? "\" stroke=\"#555\" stroke-width=\".5\">\n" : "\">\n");
    for (const Box &box : boxes)
      if (box.fill == fill && !isNarrow(box))
        os << "<rect x=\"" << toPixels(place.left * TimeScale::perPixel + box.begin) << "\" y=\"" << place.top
           << "\" width=\"" << toPixels(box.end - box.begin) << "\" height=\"" << place.height << "\"><title>"
           << escapeXml(box.text.hover) << "</title></rect>\n";
    os << "</g>\n";
  }
}

void LaneBoxes::printLabels(llvm::raw_ostream &os, const Place &place, size_t first) const {
  constexpr int64_t margin = labelMargin;
  bool isOpen = false;
  for (const Box &box : boxes) {
    auto fits = [&](const std::string &label) {
      return !label.empty() &&
             (estimateWidth(label, place.fontSize) + margin) * TimeScale::perPixel <= box.end - box.begin;
    };
    llvm::ArrayRef<std::string> labels(box.text.labels);
    labels = labels.drop_front(std::min(first, labels.size()));
    const std::string *label = llvm::find_if(labels, fits);
    if (label == labels.end())
      continue;
    // The mouse sees the box.
    if (!std::exchange(isOpen, true))
      os << "<g text-anchor=\"middle\" pointer-events=\"none\" font-size=\"" << place.fontSize << "\">\n";
    os << "<text x=\"" << toPixels(place.left * TimeScale::perPixel + (box.begin + box.end) / 2) << "\" y=\""
       << place.top + (place.height + place.fontSize * 7 / 10 + 1) / 2 << "\">" << escapeXml(*label) << "</text>\n";
  }
  if (isOpen)
    os << "</g>\n";
}

void stage::printTimeAxis(llvm::raw_ostream &os, const TimeScale &scale, int64_t left, int64_t top, int64_t bottom,
                          bool isGrid) {
  constexpr int64_t minDistance = 90;
  Ticks distance = 1;
  auto isNarrow = [&](Ticks time) {
    return __int128(time) * scale.width < __int128(scale.to - scale.from) * minDistance;
  };
  for (unsigned step = 0; isNarrow(distance) && distance < maxTicks / 10; ++step)
    distance = step % 3 == 1 ? distance / 2 * 5 : distance * 2; // 1, 2, 5, 10
  const TimeUnit &unit = findTimeUnit(scale.to);
  unsigned decimals = 0;
  for (Ticks part = unit.ticks; part > 1 && distance % part; part /= 10)
    ++decimals;
  os << (isGrid ? "<g stroke=\"#fff\">\n" : "<g text-anchor=\"middle\" fill=\"#555\">\n");
  for (Ticks time = (scale.from + distance - 1) / distance * distance; time <= scale.to; time += distance) {
    std::string x = toPixels(left * TimeScale::perPixel + scale.at(time));
    if (isGrid)
      os << "<path d=\"M" << x << ' ' << top << 'V' << bottom << "\"/>\n";
    else
      os << "<path d=\"M" << x << ' ' << top << "v5\" stroke=\"#555\"/><text x=\"" << x << "\" y=\"" << top + 18
         << "\">" << unit.format(time, decimals, /*keepsZeros=*/true) << "</text>\n";
  }
  os << "</g>\n";
}
