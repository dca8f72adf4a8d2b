//===- Table.cpp - aligned columns and readable numbers -------------------===//
#include "Table.h"
#include "stage/Symbolic/Size.h"
#include "llvm/Support/Format.h"

using namespace stage;

std::string stage::formatCount(__int128 count) {
  std::string digits = Rational{count < 0 ? -count : count, 1}.str(), result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      result += ',';
    result += digits[i];
  }
  return (count < 0 ? "-" : "") + result;
}

/// Four significant digits or so: two decimals with the largest unit not above the number.
static std::string formatScaled(__int128 number, unsigned base, llvm::ArrayRef<const char *> units) {
  if (number == 0)
    return "-";
  size_t unit = 0;
  double scaled = double(number);
  while (scaled >= base && unit + 1 < units.size()) {
    scaled /= base;
    ++unit;
  }
  std::string result;
  llvm::raw_string_ostream os(result);
  os << llvm::format(unit ? "%.2f" : "%.0f", scaled) << ' ' << units[unit];
  return os.str();
}

std::string stage::formatBytes(__int128 bytes) {
  return formatScaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string stage::formatFlops(__int128 flops) {
  return formatScaled(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"});
}

void Table::print(llvm::raw_ostream &os, bool titles) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].first.size());
    for (auto &row : rows)
      if (i < row.size())
        widths[i] = std::max(widths[i], row[i].size());
  }
  auto printRow = [&](llvm::function_ref<llvm::StringRef(size_t)> cell) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < columns.size(); ++i) {
      std::string padding(widths[i] - cell(i).size(), ' ');
      line += (i ? "  " : "");
      line += columns[i].second == Left ? cell(i).str() + padding : padding + cell(i).str();
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  };
  if (titles)
    printRow([&](size_t i) -> llvm::StringRef { return columns[i].first; });
  for (auto &row : rows)
    printRow([&](size_t i) { return i < row.size() ? llvm::StringRef(row[i]) : llvm::StringRef(); });
}
