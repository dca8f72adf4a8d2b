//===- Records.h - what an output says, listed once ------------*- C++ -*-===//
//
// Tables, JSON and CSV say the same values; lists of these per format would drift apart. A record is a value with a
// key, for programs, and a title, for people. Where it has no name it is left out.
//
//   {"flops", "FLOPs", op.flops, formatFlops}    table  1.20 TFLOP    JSON  "flops": 1200000000000
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_RECORDS_H
#define STAGE_SUPPORT_RECORDS_H

#include "stage/Support/Table.h"
#include "llvm/Support/JSON.h"
#include <variant>

namespace stage {

struct Record {
  /// From the least to the most; in JSON `least_bytes` and `most_bytes`.
  using Range = std::pair<__int128, __int128>;
  /// A number as its owner writes it.
  struct Digits {
    std::string text;
  };

  std::string key, title;
  std::variant<std::string, __int128, Range, Digits, std::vector<std::string>> value;
  std::string (*format)(__int128) = formatCount; ///< Of numbers in tables. JSON and CSV have all digits.
};
using Records = std::vector<Record>;

/// A column per title: numbers to the right, texts to the left or as `texts`, the first to the left.
Table makeTable(const Records &records, unsigned indent, Table::Alignment texts = Table::Left);
/// A row of that table.
std::vector<std::string> formatCells(const Records &records);
/// Rows that have the same titles; at least one.
void printTable(llvm::raw_ostream &os, llvm::ArrayRef<Records> rows, unsigned indent,
                Table::Alignment texts = Table::Left);

/// Members of an object that is open, and a member that is a list of objects.
void writeMembers(llvm::json::OStream &json, const Records &records);
void writeRows(llvm::json::OStream &json, llvm::StringRef name, llvm::ArrayRef<Records> rows);

/// Two lines of CSV, cell by cell.
std::vector<std::string> listKeys(const Records &records);
std::vector<std::string> listValues(const Records &records);

} // namespace stage

#endif // STAGE_SUPPORT_RECORDS_H
