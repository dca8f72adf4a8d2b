//===- Svg.h - what all pictures have in common ----------------*- C++ -*-===//
//
// Problem: each picture has a title, lines that say what is drawn, and a legend. None of them may be clipped, whatever
// the width of the picture is, and what is drawn below must know where they end.
//
//   job pretrain, pp 4 x tp 8                         the title, in bold letters
//   4 stages, 8 microbatches, bubble 27.27 %          lines
//   [] forward  [] backward  [] idle                  the legend
//   ...                                               what is drawn
//
// Rule: texts are broken between words at the width of the picture. Widths of texts are estimates, because nobody knows
// the reader's font: those of a wide one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_SVG_H
#define STAGE_LIB_REPORT_SVG_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <string>
#include <vector>

namespace stage {

struct LegendEntry {
  const char *fill;
  std::string text;
};

/// Pixels that a text takes, in a wide font.
int64_t estimateWidth(llvm::StringRef text, int64_t fontSize);
/// `12.5` of 12,500 thousandths.
std::string toPixels(int64_t thousandths);
/// Lines that take no more than so many pixels, but for words that do alone.
std::vector<std::string> wrapText(llvm::StringRef text, int64_t width, int64_t fontSize);

/// A picture that grows downwards. All numbers are pixels.
class SvgPage {
public:
  static constexpr int64_t margin = 8, titleSize = 14, textSize = 12, smallSize = 9, lineHeight = 18;
  explicit SvgPage(int64_t width) : width(width), os(text) {}

  int64_t getWidth() const { return width; }
  /// Below all that has been added: the top of what comes next.
  int64_t getTop() const { return top; }
  void addGap(int64_t height) { top += height; }
  /// A place for something that is printed on `getStream`, so many pixels high. Returns its top.
  int64_t addPlace(int64_t height) { return std::exchange(top, top + height); }
  /// In bold letters.
  void addTitle(llvm::StringRef title) { addLines(title, titleSize, /*isBold=*/true); }
  void addLine(llvm::StringRef line) { addLines(line, textSize, /*isBold=*/false); }
  void addLegend(llvm::ArrayRef<LegendEntry> entries);
  /// What is drawn is printed here, at places of the page.
  llvm::raw_ostream &getStream() { return os; }

  enum class Anchor { Start, Middle, End };
  struct Style {
    int64_t size = textSize;
    Anchor anchor = Anchor::Start;
    const char *fill = nullptr; ///< Null: black.
    bool isBold = false;
  };
  void printText(int64_t x, int64_t y, llvm::StringRef text, Style style);
  void printText(int64_t x, int64_t y, llvm::StringRef text) { printText(x, y, text, Style()); }
  /// Without a frame if `stroke` is null.
  void printRect(int64_t x, int64_t y, int64_t width, int64_t height, llvm::StringRef fill,
                 const char *stroke = nullptr);

  /// The whole file.
  void print(llvm::raw_ostream &os);

private:
  void addLines(llvm::StringRef text, int64_t size, bool isBold);

  int64_t width, top = 4;
  std::string text;
  llvm::raw_string_ostream os;
};

} // namespace stage

#endif // STAGE_LIB_REPORT_SVG_H
