//===- Schedule.cpp - schedules as text -----------------------------------===//
#include "stage/Schedule/Schedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

void Schedule::print(llvm::raw_ostream &os) const {
  os << "stages " << stages << ", microbatches " << microbatches << ", chunks " << chunks << '\n';
  if (copies != 1)
    os << "copies " << copies << '\n';
  if (!placement.empty()) {
    os << "placement ";
    llvm::interleave(placement, os, " ");
    os << '\n';
  }
  for (size_t stage = 0; stage < units.size(); ++stage) {
    os << "stage " << stage << ':';
    llvm::StringRef separator = " ";
    for (const Unit &unit : units[stage]) {
      os << separator << unit;
      separator = getSeparator(unit);
    }
    os << '\n';
  }
}

std::string Schedule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

/// Takes `NAME NUMBER` off the front.
static bool takeNumber(llvm::StringRef &text, llvm::StringRef name, unsigned &number) {
  text = text.ltrim();
  if (!text.consume_front(name))
    return false;
  text = text.ltrim();
  return !text.consumeInteger(10, number);
}

std::optional<Schedule> stage::parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  auto [header, rest] = text.ltrim().split('\n');
  if (!takeNumber(header, "stages", schedule.stages) || !header.consume_front(",") ||
      !takeNumber(header, "microbatches", schedule.microbatches) || !header.consume_front(",") ||
      !takeNumber(header, "chunks", schedule.chunks) || !header.trim().empty())
    return std::nullopt;
  for (llvm::StringRef line : llvm::split(rest, '\n')) {
    line = line.trim();
    if (line.empty())
      continue;
    unsigned stage;
    if (takeNumber(line, "copies", schedule.copies))
      continue;
    if (line.consume_front("placement ")) {
      for (line = line.ltrim(); !line.empty(); line = line.ltrim())
        if (line.consumeInteger(10, schedule.placement.emplace_back()))
          return std::nullopt;
      continue;
    }
    if (!takeNumber(line, "stage", stage) || stage != schedule.units.size() || !line.consume_front(":"))
      return std::nullopt;
    std::optional<std::vector<Unit>> units = parseUnits(line);
    if (!units)
      return std::nullopt;
    schedule.units.push_back(std::move(*units));
  }
  return schedule;
}
