//===- Svg.cpp - what all pictures have in common -------------------------===//
#include "Svg.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

int64_t stage::estimateWidth(llvm::StringRef text, int64_t fontSize) {
  // Hundredths of the font's size. Digits and capitals are wide; in a long text narrow letters make up for them.
  constexpr size_t longText = 24;
  constexpr int64_t wide = 62, mean = 56;
  int64_t perLetter = text.size() < longText ? wide : mean;
  return (int64_t(text.size()) * fontSize * perLetter + 99) / 100;
}

std::string stage::toPixels(int64_t thousandths) {
  int64_t tenths = (thousandths + 50) / 100;
  return toDecimal(tenths / 10) + (tenths % 10 ? "." + toDecimal(tenths % 10) : "");
}

std::vector<std::string> stage::wrapText(llvm::StringRef text, int64_t width, int64_t fontSize) {
  std::vector<std::string> lines(1);
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    std::string longer = lines.back() + (lines.back().empty() ? "" : " ") + word.str();
    if (!lines.back().empty() && estimateWidth(longer, fontSize) > width)
      lines.push_back(word.str());
    else
      lines.back() = std::move(longer);
  }
  return lines;
}

void SvgPage::addLines(llvm::StringRef text, int64_t size, bool isBold) {
  // Bold letters are a tenth wider.
  for (const std::string &line : wrapText(text, (width - 2 * margin) * (isBold ? 9 : 10) / 10, size))
    printText(margin, addPlace(lineHeight) + 16, line, {size, Anchor::Start, nullptr, isBold});
}

void SvgPage::addLegend(llvm::ArrayRef<LegendEntry> entries) {
  constexpr int64_t boxSize = 12;
  top += 6;
  int64_t x = margin;
  for (const LegendEntry &entry : entries) {
    int64_t size = boxSize + 6 + estimateWidth(entry.text, textSize) + 8;
    if (x > margin && x + size > width) {
      x = margin;
      top += lineHeight;
    }
    printRect(x, top, boxSize, boxSize, entry.fill, "#555");
    printText(x + boxSize + 4, top + 10, entry.text);
    x += size;
  }
  top += lineHeight;
}

void SvgPage::printText(int64_t x, int64_t y, llvm::StringRef text, Style style) {
  os << "<text x=\"" << x << "\" y=\"" << y << '"';
  if (style.size != textSize)
    os << " font-size=\"" << style.size << '"';
  if (style.isBold)
    os << " font-weight=\"bold\"";
  if (style.anchor != Anchor::Start)
    os << " text-anchor=\"" << (style.anchor == Anchor::Middle ? "middle" : "end") << '"';
  if (style.fill)
    os << " fill=\"" << style.fill << '"';
  os << '>' << escapeXml(text) << "</text>\n";
}

void SvgPage::printRect(int64_t x, int64_t y, int64_t width, int64_t height, llvm::StringRef fill, const char *stroke) {
  os << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << width << "\" height=\"" << height << "\" fill=\""
     << fill << '"';
  if (stroke)
    os << " stroke=\"" << stroke << "\" stroke-width=\".5\"";
  os << "/>\n";
}

void SvgPage::print(llvm::raw_ostream &out) {
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << top << "\" viewBox=\"0 0 "
      << width << ' ' << top << "\" font-family=\"sans-serif\" font-size=\"" << textSize << "\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      << os.str() << "</svg>\n";
}
