//===- Unit.cpp - kinds of phases, and units as text ----------------------===//
#include "stage/Schedule/Unit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

llvm::StringRef stage::getName(PhaseKind kind) {
  static const llvm::StringLiteral names[] = {
#define PHASE(id, name, letter) name,
#include "stage/Schedule/Phases.def"
  };
  return names[unsigned(kind)];
}

static constexpr char letters[] = {
#define PHASE(id, name, letter) letter,
#include "stage/Schedule/Phases.def"
};

char stage::getLetter(PhaseKind kind) { return letters[unsigned(kind)]; }

std::string Unit::str(bool showChunk) const {
  if (!getLetter(kind))
    return getName(kind).str();
  std::string text = getLetter(kind) + std::to_string(microbatch);
  return chunk || showChunk ? text + "." + std::to_string(chunk) : text;
}

llvm::raw_ostream &stage::operator<<(llvm::raw_ostream &os, const Unit &unit) { return os << unit.str(); }

static std::optional<Unit> parseUnit(llvm::StringRef word) {
  const char *kind = llvm::find(letters, word.front());
  auto [microbatch, chunk] = word.drop_front().split('.');
  Unit unit;
  if (kind == std::end(letters) || !*kind || microbatch.getAsInteger(10, unit.microbatch))
    return std::nullopt;
  // `F0.` has a dot and no chunk.
  if (word.contains('.') && chunk.getAsInteger(10, unit.chunk))
    return std::nullopt;
  unit.kind = PhaseKind(kind - letters);
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

