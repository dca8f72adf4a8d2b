//===- ReadTable.cpp - the tables of machines -----------------------------===//
//
// Problem: a table of measured values comes from a script or a spreadsheet, and one wrong cell would make every price
// wrong without a word.
//
//   # Where the values come from.
//   m,n,k,ratio
//   64,512,256,4.1
//   64,512,1024,3.9
//
// Rule: the first line without `#` names the columns. All coordinates but the last column ascend from row to row, the
// first one the slowest, and each combination of coordinates has one row. Cells are numbers above 0. The first fault is
// reported at its cell, with a note at the entry that has the table.
//
// A program reads a table once: plan after plan of a session has the same ones (Program::getTables). One with a fault
// is read, and reported, again.
//
// Limits: no quotes. Files of up to 1 MiB.
//
//===----------------------------------------------------------------------===//
#include "MachineWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::sema;

namespace {
constexpr uint64_t maxTableBytes = uint64_t(1) << 20;

class TableReader {
public:
  TableReader(std::unique_ptr<llvm::MemoryBuffer> buffer, TableForm form, StringRef what, SMRange entry,
              DiagnosticEngine &diags)
      : buffer(std::move(buffer)), text(this->buffer->getBuffer()), form(form), what(what), entry(entry), diags(diags) {
  }

  std::shared_ptr<const Grid> read() {
    StringRef rest = text;
    bool hasHeader = false;
    while (!rest.empty()) {
      auto [line, tail] = rest.split('\n');
      rest = tail;
      line = line.rtrim();
      if (line.empty() || line.startswith("#"))
        continue;
      if (hasHeader ? !readRow(line) : !readHeader(line))
        return nullptr;
      hasHeader = true;
    }
    if (rows.empty()) {
      finish(diags.report(locate(text), diag::TableEmpty) << llvm::join(form.columns, ","));
      return nullptr;
    }
    return makeGrid();
  }

private:
  struct Row {
    StringRef line;
    std::vector<double> cells;
  };

  /// The place of a part of the file, which messages can show from then on.
  SMLoc locate(StringRef part) {
    if (buffer)
      diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
    return SMLoc::getFromPointer(part.data());
  }
  static SMRange rangeOf(StringRef part) {
    return {SMLoc::getFromPointer(part.data()), SMLoc::getFromPointer(part.data() + part.size())};
  }
  void finish(DiagnosticBuilder &&error) { error.note(entry.Start, diag::TableReadHere).range(entry) << what; }

  bool readHeader(StringRef line) {
    std::string wanted = llvm::join(form.columns, ",");
    if (line == wanted)
      return true;
    finish(diags.report(locate(line), diag::TableColumns).range(rangeOf(line)) << wanted << line);
    return false;
  }

  bool readRow(StringRef line) {
    Row row{line, {}};
    llvm::SmallVector<StringRef, 4> cells;
    line.split(cells, ',');
    if (cells.size() != form.columns.size()) {
      finish(diags.report(locate(line), diag::TableRow).range(rangeOf(line))
             << int64_t(form.columns.size()) << llvm::join(form.columns, ",") << int64_t(cells.size()));
      return false;
    }
    for (auto [cell, column] : llvm::zip(cells, form.columns)) {
      std::optional<Rational> value = Rational::read(cell);
      bool isFirst = row.cells.empty() && form.leastFirst;
      Rational least = isFirst ? Rational::integer(form.leastFirst) : Rational{1, 1'000'000'000};
      if (!value || value->compare(least) < 0 || value->compare({1'000'000'000'000'000, 1}) > 0) {
        finish(diags.report(locate(cell), diag::TableCell).range(rangeOf(cell))
               << column << (isFirst ? least.str() : "1e-9") << cell);
        return false;
      }
      row.cells.push_back(value->toDouble());
    }
    if (!rows.empty()) {
      auto coordinates = [](const Row &of) { return ArrayRef(of.cells).drop_back(); };
      ArrayRef<double> before = coordinates(rows.back()), now = coordinates(row);
      if (before == now || std::lexicographical_compare(now.begin(), now.end(), before.begin(), before.end())) {
        finish(diags.report(locate(line), diag::TableOrder).range(rangeOf(line)) << line << rows.back().line);
        return false;
      }
    }
    rows.push_back(std::move(row));
    return true;
  }

  std::shared_ptr<const Grid> makeGrid() {
    auto grid = std::make_shared<Grid>();
    size_t numAxes = form.columns.size() - 1;
    for (size_t i = 0; i < numAxes; ++i) {
      std::vector<double> axis;
      for (const Row &row : rows)
        axis.push_back(row.cells[i]);
      llvm::sort(axis);
      axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
      grid->axes.push_back(std::move(axis));
    }
    // Rows ascend, so that the first one that is missing stands where another one is.
    std::vector<size_t> at(numAxes, 0);
    for (size_t i = 0;; ++i) {
      bool isMissing = i == rows.size();
      for (size_t axis = 0; axis < numAxes && !isMissing; ++axis)
        isMissing = rows[i].cells[axis] != grid->axes[axis][at[axis]];
      if (isMissing) {
        reportGap(*grid, at, rows[std::min(i, rows.size() - 1)]);
        return nullptr;
      }
      grid->values.push_back(rows[i].cells.back());
      size_t axis = numAxes;
      while (axis > 0 && ++at[axis - 1] == grid->axes[axis - 1].size())
        at[--axis] = 0;
      if (axis == 0)
        return grid;
    }
  }

  void reportGap(const Grid &grid, ArrayRef<size_t> at, const Row &near) {
    std::string missing;
    for (auto [axis, position, column] : llvm::zip(grid.axes, at, form.columns)) {
      std::string number = std::to_string(axis[position]); // without zeros behind the point
      number.erase(number.find_last_not_of('0') + 1);
      missing += (missing.empty() ? "" : ", ") + column.str() + " = " + StringRef(number).rtrim('.').str();
    }
    finish(diags.report(locate(near.line), diag::TableGap).range(rangeOf(near.line)) << missing);
  }

  std::unique_ptr<llvm::MemoryBuffer> buffer; ///< Null once the engine has it.
  StringRef text;
  TableForm form;
  StringRef what;
  SMRange entry;
  DiagnosticEngine &diags;
  std::vector<Row> rows;
};
} // namespace

std::shared_ptr<const Grid> stage::sema::readTable(const Program &program, const ast::StringExpr &name, StringRef path,
                                                   TableForm form, StringRef what, DiagnosticEngine &diags) {
  llvm::SmallString<128> file(llvm::sys::path::parent_path(path));
  if (file.empty() || llvm::sys::path::is_absolute(name.text))
    file = llvm::sys::path::is_absolute(name.text) ? "" : "."; // `-` is a file here, too
  llvm::sys::path::append(file, name.text);
  std::shared_ptr<const Grid> &known = program.getTables()[llvm::join(form.columns, ",") + " " + file.str().str()];
  if (known)
    return known;
  std::string error;
  auto buffer = readFile(file, error, maxTableBytes);
  if (!buffer) {
    diags.report(name.loc(), diag::CannotReadFile).range(name.range) << file << error;
    return nullptr;
  }
  return known = TableReader(std::move(buffer), form, what, name.range, diags).read();
}
