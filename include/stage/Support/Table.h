//===- Table.h - aligned columns and readable numbers ----------*- C++ -*-===//
//
// What the reports have in common: a table whose columns are as wide as their widest
// cell, first column and texts to the left, numbers to the right.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_TABLE_H
#define STAGE_SUPPORT_TABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <set>
#include <string>
#include <vector>

namespace stage {

/// `1234567`.
std::string toDecimal(__int128 count);
/// `1,234,567`.
std::string formatCount(__int128 count);
/// `12 to 345`, or `12` if both are that.
std::string formatRange(const std::string &least, const std::string &most);
/// `11.25 GiB`, `512 B`; `-` for none.
std::string formatBytes(__int128 bytes);
/// `421.65 TFLOP`; `-` for none.
std::string formatFlops(__int128 flops);

/// `27.27`, of a whole above 0.
std::string formatPercent(int64_t part, int64_t whole);

class Table {
public:
  enum Alignment { Left, Right };
  /// Column titles, one per column. The table is indented by `indent` spaces.
  Table(std::vector<std::pair<std::string, Alignment>> columns, unsigned indent)
      : columns(std::move(columns)), indent(indent) {}
  /// The first column holds names, all others numbers.
  static Table ofNumbers(llvm::ArrayRef<std::string> titles, unsigned indent = 0);
  /// Cells left out are empty.
  void addRow(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  /// The same, with a text from the last of the cells on over the columns that follow.
  void addText(std::vector<std::string> cells) {
    texts.insert(rows.size());
    addRow(std::move(cells));
  }
  bool empty() const { return rows.empty(); }
  void print(llvm::raw_ostream &os, bool titles = true) const;

private:
  std::vector<std::pair<std::string, Alignment>> columns;
  std::vector<std::vector<std::string>> rows;
  std::set<size_t> texts; ///< Rows that end in one.
  unsigned indent;
};

} // namespace stage

#endif // STAGE_SUPPORT_TABLE_H
