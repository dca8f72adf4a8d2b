//===- Unit.cpp - kinds of phases, and units as text ----------------------===//
#include "stage/Schedule/Unit.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

llvm::StringRef stage::getName(PhaseKind kind) {
  static const llvm::StringLiteral names[] = {
#define PHASE(id, name, letter, duration) name,
#include "stage/Schedule/Phases.def"
  };
  return names[unsigned(kind)];
}

static constexpr char letters[] = {
#define PHASE(id, name, letter, duration) letter,
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

std::optional<PhaseKind> stage::findPhase(char letter) {
  const char *found = llvm::find(letters, letter);
  return letter && found != std::end(letters) ? std::optional(PhaseKind(found - letters)) : std::nullopt;
}

static size_t getHash(const UnitBindings &bindings) {
  return llvm::hash_combine_range(bindings.begin(), bindings.end());
}

static UnitBindings dropBatch(UnitBindings bindings) {
  llvm::erase_if(bindings, [](auto &bound) { return bound.first == batchSymbol; });
  return bindings;
}

/// One of the numbers of a hash; nothing if what is looked for has none of them.
static std::optional<unsigned> findNumber(const std::unordered_multimap<size_t, unsigned> &numbers, size_t hash,
                                          llvm::function_ref<bool(unsigned number)> isSame) {
  for (auto [it, end] = numbers.equal_range(hash); it != end; ++it)
    if (isSame(it->second))
      return it->second;
  return std::nullopt;
}

Environments::Environments() { add({}); }

unsigned Environments::add(UnitBindings bindings) {
  llvm::sort(bindings);
  size_t hash = getHash(bindings);
  if (auto known = findNumber(numbers, hash, [&](unsigned number) { return all[number] == bindings; }))
    return *known;
  unsigned number = all.size();
  numbers.emplace(hash, number);
  UnitBindings sizes = dropBatch(bindings);
  for (auto &[symbol, value] : sizes)
    symbols.insert(symbol);
  size_t hashOfSizes = getHash(sizes);
  auto first = findNumber(firsts, hashOfSizes, [&](unsigned other) { return dropBatch(all[other]) == sizes; });
  if (!first)
    firsts.emplace(hashOfSizes, number);
  alike.push_back(first.value_or(number));
  all.push_back(std::move(bindings));
  return number;
}

std::string stage::toString(const UnitBindings &environment) {
  std::string text;
  for (auto &[symbol, value] : environment)
    text += (text.empty() ? "(" : ",") + symbol + "=" + std::to_string(value);
  return text.empty() ? text : text + ")";
}

/// Reads `S=16,T=4)`.
static std::optional<UnitBindings> parseBindings(llvm::StringRef text) {
  UnitBindings bindings;
  if (!text.consume_back(")"))
    return std::nullopt;
  for (llvm::StringRef binding : llvm::split(text, ',')) {
    auto [symbol, number] = binding.split('=');
    int64_t value;
    if (symbol.empty() || number.getAsInteger(10, value) ||
        llvm::any_of(bindings, [&, name = symbol](auto &known) { return known.first == name; }))
      return std::nullopt;
    bindings.emplace_back(symbol.str(), value);
  }
  return bindings;
}

static std::optional<Unit> parseUnit(llvm::StringRef word, Environments *environments) {
  auto [ofUnit, feeder] = word.split('<');
  auto [name, bound] = ofUnit.split('(');
  std::optional<PhaseKind> kind = findPhase(name.front());
  auto [microbatch, chunk] = name.drop_front().split('.');
  Unit unit;
  if (!kind || microbatch.getAsInteger(10, unit.microbatch))
    return std::nullopt;
  // `F0.` has a dot and no chunk.
  if (name.contains('.') && chunk.getAsInteger(10, unit.chunk))
    return std::nullopt;
  unit.kind = *kind;
  if (ofUnit.size() != word.size() && (!environments || feeder.getAsInteger(10, unit.feeder.emplace())))
    return std::nullopt;
  if (name.size() == ofUnit.size())
    return unit;
  std::optional<UnitBindings> bindings = parseBindings(bound);
  if (!bindings || !environments)
    return std::nullopt;
  unit.environment = environments->add(std::move(*bindings));
  return unit;
}

std::optional<std::vector<Unit>> stage::parseUnits(llvm::StringRef text, Environments *environments) {
  std::vector<Unit> units;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    word = word.trim();
    if (word.empty())
      continue;
    llvm::SmallVector<llvm::StringRef, 2> names;
    word.split(names, '|');
    if (names.size() > 2)
      return std::nullopt;
    for (llvm::StringRef name : names) {
      std::optional<Unit> unit = name.empty() || name.front() == '(' ? std::nullopt : parseUnit(name, environments);
      if (!unit)
        return std::nullopt;
      units.push_back(*unit);
    }
    units[units.size() - names.size()].overlapsNext = names.size() == 2;
  }
  return units;
}
