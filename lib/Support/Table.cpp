//===- Table.cpp - aligned columns and readable numbers -------------------===//
#include "stage/Support/Table.h"
#include "llvm/Support/Format.h"

using namespace stage;

std::string stage::toDecimal(__int128 count) {
  std::string digits;
  auto rest = count < 0 ? -(unsigned __int128)count : (unsigned __int128)count;
  do {
    digits += char('0' + unsigned(rest % 10));
    rest /= 10;
  } while (rest);
  return (count < 0 ? "-" : "") + std::string(digits.rbegin(), digits.rend());
}

std::string stage::formatCount(__int128 count) {
  std::string digits = toDecimal(count);
  for (size_t at = digits.size(), begin = count<0; at> begin + 3;)
    digits.insert(at -= 3, ",");
  return digits;
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

std::string stage::formatRange(const std::string &least, const std::string &most) {
  return least == most ? most : least + " to " + most;
}

std::string stage::formatBytes(__int128 bytes) {
  return formatScaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string stage::formatFlops(__int128 flops) {
  return formatScaled(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"});
}

std::string stage::formatPercent(int64_t part, int64_t whole) {
  __int128 hundredths = (__int128(part) * 20'000 + whole) / (__int128(whole) * 2);
  return toDecimal(hundredths / 100) + "." + toDecimal(100 + hundredths % 100).substr(1);
}

Table Table::ofNumbers(llvm::ArrayRef<std::string> titles, unsigned indent) {
  std::vector<std::pair<std::string, Alignment>> columns;
  for (const std::string &title : titles)
    columns.emplace_back(title, columns.empty() ? Left : Right);
  return Table(std::move(columns), indent);
}

void Table::print(llvm::raw_ostream &os, bool titles) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].first.size());
    for (size_t r = 0; r < rows.size(); ++r)
      if (i + texts.count(r) < rows[r].size())
        widths[i] = std::max(widths[i], rows[r][i].size());
  }
  auto printRow = [&](llvm::ArrayRef<std::string> cells, bool endsInText) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      bool isText = endsInText && i + 1 == cells.size();
      std::string padding(isText ? 0 : widths[i] - cells[i].size(), ' ');
      line += (i ? "  " : "");
      line += columns[i].second == Left || isText ? cells[i] + padding : padding + cells[i];
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  };
  std::vector<std::string> heads;
  for (auto &column : columns)
    heads.push_back(column.first);
  if (titles)
    printRow(heads, /*endsInText=*/false);
  for (size_t r = 0; r < rows.size(); ++r)
    printRow(rows[r], texts.count(r));
}
