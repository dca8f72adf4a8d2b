//===- Schedule.cpp - schedules as text -----------------------------------===//
#include "stage/Schedule/Schedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

/// One letter per UnitKind, in its order.
static constexpr llvm::StringLiteral letters = "FBIWR";
static_assert(letters.size() == numUnitKinds);

llvm::raw_ostream &stage::operator<<(llvm::raw_ostream &os, const Unit &unit) {
  os << letters[unsigned(unit.kind)] << unit.microbatch;
  if (unit.chunk)
    os << '.' << unit.chunk;
  return os;
}

template <typename T> static std::string toString(const T &value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << value;
  return os.str();
}

std::string Unit::str() const { return toString(*this); }

void Schedule::print(llvm::raw_ostream &os) const {
  os << "stages " << stages << ", microbatches " << microbatches << ", chunks " << chunks << '\n';
  if (!placement.empty()) {
    os << "placement ";
    llvm::interleave(placement, os, " ");
    os << '\n';
  }
  for (size_t stage = 0; stage < units.size(); ++stage) {
    os << "stage " << stage << ':';
    for (const Unit &unit : units[stage])
      os << ' ' << unit;
    os << '\n';
  }
}

std::string Schedule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

static std::optional<Unit> parseUnit(llvm::StringRef word) {
  size_t kind = letters.find(word.front());
  auto [microbatch, chunk] = word.drop_front().split('.');
  Unit unit;
  if (kind == letters.size() || kind >= numUnitKinds || microbatch.getAsInteger(10, unit.microbatch))
    return std::nullopt;
  // `F0.` has a dot and no chunk.
  if (word.contains('.') && chunk.getAsInteger(10, unit.chunk))
    return std::nullopt;
  unit.kind = UnitKind(kind);
  return unit;
}

std::optional<std::vector<Unit>> stage::parseUnits(llvm::StringRef text) {
  std::vector<Unit> units;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    word = word.trim();
    if (word.empty())
      continue;
    std::optional<Unit> unit = parseUnit(word);
    if (!unit)
      return std::nullopt;
    units.push_back(*unit);
  }
  return units;
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
