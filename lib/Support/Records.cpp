//===- Records.cpp - what an output says, listed once ---------------------===//
#include "stage/Support/Records.h"
#include "stage/Support/Json.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

static std::string format(const Record &record, std::string (*number)(__int128)) {
  if (auto *value = std::get_if<__int128>(&record.value))
    return number(*value);
  if (auto *range = std::get_if<Record::Range>(&record.value))
    return formatRange(number(range->first), number(range->second));
  if (auto *list = std::get_if<std::vector<std::string>>(&record.value))
    return llvm::join(*list, ", ");
  auto *digits = std::get_if<Record::Digits>(&record.value);
  return digits ? digits->text : std::get<std::string>(record.value);
}

/// `f` of the records that have a name of this sort.
template <typename F> static auto list(const Records &records, std::string Record::*name, F f) {
  std::vector<decltype(f(records.front()))> result;
  for (const Record &record : records)
    if (!(record.*name).empty())
      result.push_back(f(record));
  return result;
}

Table stage::makeTable(const Records &records, unsigned indent, Table::Alignment texts) {
  auto columns = list(records, &Record::title, [&](const Record &record) {
    return std::pair(record.title, std::holds_alternative<std::string>(record.value) ? texts : Table::Right);
  });
  columns.front().second = Table::Left;
  return Table(std::move(columns), indent);
}

std::vector<std::string> stage::formatCells(const Records &records) {
  return list(records, &Record::title, [](const Record &record) { return format(record, record.format); });
}

std::vector<std::string> stage::listKeys(const Records &records) {
  return list(records, &Record::key, [](const Record &record) { return record.key; });
}

std::vector<std::string> stage::listValues(const Records &records) {
  return list(records, &Record::key, [](const Record &record) { return format(record, toDecimal); });
}

void stage::printTable(llvm::raw_ostream &os, llvm::ArrayRef<Records> rows, unsigned indent, Table::Alignment texts) {
  Table table = makeTable(rows.front(), indent, texts);
  for (const Records &row : rows)
    table.addRow(formatCells(row));
  table.print(os);
}

void stage::writeMembers(llvm::json::OStream &json, const Records &records) {
  for (const Record &record : records)
    if (record.key.empty()) {
      continue;
    } else if (auto *range = std::get_if<Record::Range>(&record.value)) {
      writeNumber(json, "least_" + record.key, range->first);
      writeNumber(json, "most_" + record.key, range->second);
    } else if (auto *list = std::get_if<std::vector<std::string>>(&record.value)) {
      json.attribute(record.key, llvm::json::Array(*list));
    } else if (auto *text = std::get_if<std::string>(&record.value)) {
      json.attribute(record.key, *text);
    } else {
      json.attributeBegin(record.key);
      json.rawValue(format(record, toDecimal));
      json.attributeEnd();
    }
}

void stage::writeRows(llvm::json::OStream &json, llvm::StringRef name, llvm::ArrayRef<Records> rows) {
  json.attributeArray(name, [&] {
    for (const Records &row : rows)
      json.object([&] { writeMembers(json, row); });
  });
}
