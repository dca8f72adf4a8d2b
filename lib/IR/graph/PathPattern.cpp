//===- PathPattern.cpp - patterns over the paths of values ----------------===//
#include "stage/IR/graph/PathPattern.h"
#include "stage/IR/graph/Graph.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::optional<PathPattern> PathPattern::parse(llvm::StringRef text) {
  PathPattern pattern;
  pattern.text = text.str();
  text = text.trim();
  if (text.consume_front("param "))
    pattern.params = true;
  else
    pattern.results = text.consume_front("result ");
  text = text.trim();
  pattern.lackable = text.consume_back("?");
  if (text.empty())
    return std::nullopt;
  // Split at dots outside braces.
  llvm::SmallVector<std::string, 4> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0)
      return std::nullopt;
    if (c == '.' && depth == 0)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  if (depth != 0)
    return std::nullopt;
  for (llvm::StringRef part : parts) {
    part.consume_back("[*]");
    if (part.empty() || part.contains('[') || (part.contains('?') && !part.startswith("{")))
      return std::nullopt;
    Segment &segment = pattern.segments.emplace_back();
    auto &alternatives = segment.alternatives;
    if (part.consume_front("{")) {
      bool areCalls = part.consume_back("()");
      if (!part.consume_back("}"))
        return std::nullopt;
      llvm::SmallVector<llvm::StringRef, 4> names;
      part.split(names, ',');
      for (llvm::StringRef name : names) {
        bool mayLack = name.consume_back("?");
        if (name.empty())
          continue;
        alternatives.push_back(name.str() + (areCalls ? "()" : ""));
        name.consume_back("()");
        if (mayLack)
          segment.lackable.insert(name);
      }
    } else {
      alternatives.push_back(part.str());
    }
    if (alternatives.empty())
      return std::nullopt;
  }
  // `softmax()`, `{linear(), norm()}`, `{linear, norm}()`: all that stand last are ops, or none.
  auto isCall = [](llvm::StringRef name) { return name.endswith("()"); };
  for (const Segment &segment : llvm::makeArrayRef(pattern.segments).drop_back())
    if (llvm::any_of(segment.alternatives, isCall))
      return std::nullopt;
  auto &last = pattern.segments.back().alternatives;
  if (llvm::any_of(last, isCall)) {
    if (!llvm::all_of(last, isCall))
      return std::nullopt;
    for (std::string &name : last)
      name.resize(name.size() - 2);
    pattern.ops = true;
  }
  for (Segment &segment : pattern.segments)
    for (const std::string &name : segment.alternatives) {
      if (llvm::StringRef(name).contains('*'))
        segment.globs.push_back(name);
      else
        segment.names.insert(name);
    }
  return pattern;
}

bool PathPattern::namesGradient() const {
  if (segments.size() < 2)
    return false;
  const auto &last = segments.back().alternatives;
  return last.size() == 1 && last.front() == "grad";
}

/// Matches `pattern` against `text`, where a part of the pattern may be `star` and stand for any run of `text`. Where a
/// part does not fit, the last star takes one more: earlier ones need never be tried again.
template <typename Pattern, typename Text, typename IsStar, typename Fits>
static bool matchStars(const Pattern &pattern, const Text &text, IsStar isStar, Fits fits) {
  size_t p = 0, t = 0, afterStar = 0, takenByStar = 0;
  bool sawStar = false;
  while (t < text.size()) {
    if (p < pattern.size() && isStar(pattern[p])) {
      sawStar = true;
      afterStar = ++p;
      takenByStar = t;
    } else if (p < pattern.size() && fits(pattern[p], text[t])) {
      ++p;
      ++t;
    } else if (sawStar) {
      p = afterStar;
      t = ++takenByStar;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && isStar(pattern[p]))
    ++p;
  return p == pattern.size();
}

/// `*` stands for any run of characters.
static bool matchGlob(llvm::StringRef glob, llvm::StringRef text) {
  return matchStars(
      glob, text, [](char c) { return c == '*'; }, std::equal_to<char>());
}

bool PathPattern::Segment::matches(llvm::StringRef name) const {
  return names.contains(name) || llvm::any_of(globs, [&](const std::string &glob) { return matchGlob(glob, name); });
}

/// `**` stands for any run of components.
bool PathPattern::matchSegments(llvm::ArrayRef<llvm::StringRef> path) const {
  return matchStars(
      segments, path, [](const Segment &segment) { return segment.alternatives.front() == "**"; },
      [](const Segment &segment, llvm::StringRef name) { return segment.matches(name); });
}

PathNames stage::splitPath(llvm::StringRef path) {
  PathNames names;
  path.split(names, '.');
  llvm::erase_if(names, [](llvm::StringRef name) { return !name.empty() && llvm::all_of(name, llvm::isDigit); });
  return names;
}

bool PathPattern::matchesPath(llvm::StringRef path) const { return !ops && matchSegments(splitPath(path)); }

/// What patterns call a value: its path, or that of its op. Nothing if they have no name for it.
static std::optional<PathNames> getNames(const Value &value) {
  if (!value.path.empty())
    return splitPath(value.path);
  const Op *op = value.getOp();
  if (!op || op->kind != OpKind::Compute)
    return std::nullopt;
  PathNames parts = splitPath(op->scope);
  llvm::SmallVector<llvm::StringRef, 2> ofOp; // with the number of its variant
  llvm::StringRef(op->def->name).split(ofOp, '.');
  parts.append(ofOp.begin(), ofOp.end());
  return parts;
}

/// What patterns call an op: without the number of its variant, and, if it has one, with it.
static llvm::SmallVector<PathNames, 2> listNames(llvm::StringRef scope, llvm::StringRef name) {
  llvm::SmallVector<PathNames, 2> all(1, scope.empty() ? PathNames() : splitPath(scope));
  auto [base, variant] = name.split('.');
  all.front().push_back(base);
  if (!variant.empty()) {
    all.push_back(all.front());
    all.back().push_back(variant);
  }
  return all;
}

bool PathPattern::matches(const Value &value) const {
  const Op *op = value.getOp();
  bool isParam = op && isState(op->kind), isInput = op && op->kind == OpKind::Input;
  if (ops || (params && !isParam) || (results && (isParam || isInput)))
    return false;
  if (value.path.empty() && !segments.back().globs.empty())
    return false;
  std::optional<PathNames> names = getNames(value);
  return names && matchSegments(*names);
}

bool PathPattern::matchesOp(llvm::StringRef scope, llvm::StringRef name) const {
  return ops && llvm::any_of(listNames(scope, name), [&](const PathNames &names) { return matchSegments(names); });
}

//===----------------------------------------------------------------------===//
// Names in braces that match nothing
//===----------------------------------------------------------------------===//

bool PathPattern::namesAlternatives() const {
  return llvm::any_of(segments, [](const Segment &segment) {
    return segment.alternatives.size() > 1 && segment.alternatives.size() > segment.lackable.size();
  });
}

/// A name of a segment is seen if some reading of the whole path uses it: where the segments before it can be the names
/// before, and those behind it the names behind.
void PathPattern::noteSegments(llvm::ArrayRef<llvm::StringRef> path, SeenNames &seen) const {
  size_t rows = segments.size(), columns = path.size();
  auto at = [&](size_t i, size_t j) { return i * (columns + 1) + j; };
  std::vector<bool> before((rows + 1) * (columns + 1)), behind = before;
  before[at(0, 0)] = behind[at(rows, columns)] = true;
  for (size_t i = 0; i <= rows; ++i)
    for (size_t j = 0; j <= columns; ++j) {
      if (i && isAnyDepth(i - 1) && (before[at(i - 1, j)] || (j && before[at(i, j - 1)])))
        before[at(i, j)] = true;
      if (i && j && !isAnyDepth(i - 1) && before[at(i - 1, j - 1)] && segments[i - 1].matches(path[j - 1]))
        before[at(i, j)] = true;
    }
  for (size_t i = rows + 1; i-- > 0;)
    for (size_t j = columns + 1; j-- > 0;) {
      if (i < rows && isAnyDepth(i) && (behind[at(i + 1, j)] || (j < columns && behind[at(i, j + 1)])))
        behind[at(i, j)] = true;
      if (i < rows && j < columns && !isAnyDepth(i) && behind[at(i + 1, j + 1)] && segments[i].matches(path[j]))
        behind[at(i, j)] = true;
    }
  seen.resize(rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; segments[i].alternatives.size() > 1 && j < columns; ++j) {
      if (!before[at(i, j)] || !behind[at(i + 1, j + 1)])
        continue;
      if (segments[i].names.contains(path[j]))
        seen[i].insert(path[j]);
      for (const std::string &glob : segments[i].globs)
        if (matchGlob(glob, path[j]))
          seen[i].insert(glob);
    }
}

void PathPattern::note(const Value &value, SeenNames &seen) const {
  if (matches(value))
    noteSegments(*getNames(value), seen);
}

void PathPattern::notePath(llvm::StringRef path, SeenNames &seen) const {
  if (!ops)
    noteSegments(splitPath(path), seen);
}

void PathPattern::noteOp(llvm::StringRef scope, llvm::StringRef name, SeenNames &seen) const {
  if (!ops)
    return;
  for (const PathNames &names : listNames(scope, name))
    noteSegments(names, seen);
}

/// A list of generated names may be long; the first ones tell what is wrong.
constexpr size_t maxUnseen = 20;

std::vector<std::pair<std::string, PathPattern>> PathPattern::listUnseen(const SeenNames &seen) const {
  std::vector<std::pair<std::string, PathPattern>> unseen;
  for (size_t i = 0; i < segments.size(); ++i)
    for (const std::string &name : segments[i].alternatives) {
      if (segments[i].alternatives.size() < 2 || segments[i].lackable.contains(name) ||
          (i < seen.size() && seen[i].contains(name)) || unseen.size() == maxUnseen)
        continue;
      PathPattern alone = *this;
      Segment &segment = alone.segments[i];
      segment = Segment();
      segment.alternatives.push_back(name);
      if (llvm::StringRef(name).contains('*'))
        segment.globs.push_back(name);
      else
        segment.names.insert(name);
      unseen.emplace_back(name, std::move(alone));
    }
  return unseen;
}

/// What a level costs that the pattern leaves out, and a name without a letter in common beyond its letters: of the
/// values with the last name of a pattern one in another module is nearer than another value of the same module.
constexpr unsigned levelCost = 2;

static unsigned compare(llvm::StringRef glob, llvm::StringRef name) {
  if (matchGlob(glob, name))
    return 0;
  unsigned distance = name.edit_distance(glob);
  return distance + (distance >= std::max(glob.size(), name.size()) ? levelCost : 0);
}

std::optional<unsigned> PathPattern::getDistance(llvm::StringRef path) const {
  llvm::SmallVector<llvm::StringRef, 6> parts;
  path.split(parts, '.');
  // letters[j]: how far the segments seen so far are from the first j parts.
  std::vector<unsigned> letters(parts.size() + 1);
  for (size_t j = 0; j < parts.size(); ++j)
    letters[j + 1] = letters[j] + levelCost;
  unsigned total = 0;
  for (const Segment &segment : segments) {
    const auto &alternatives = segment.alternatives;
    std::vector<unsigned> next(parts.size() + 1);
    bool isAny = alternatives.front() == "**";
    unsigned shortest = ~0u;
    for (llvm::StringRef alternative : alternatives)
      shortest = std::min<unsigned>(shortest, alternative.size() - alternative.count('*'));
    total += shortest;
    for (size_t j = 0; j <= parts.size(); ++j) {
      next[j] = letters[j] + shortest;
      if (j && isAny)
        next[j] = std::min(next[j], next[j - 1]);
      if (!j || isAny)
        continue;
      next[j] = std::min(next[j], next[j - 1] + levelCost);
      for (llvm::StringRef alternative : alternatives)
        next[j] = std::min(next[j], letters[j - 1] + compare(alternative, parts[j - 1]));
    }
    letters = std::move(next);
  }
  return letters.back() <= (total + 1) / 2 ? std::optional(letters.back()) : std::nullopt;
}

unsigned PathPattern::getSpecificity() const {
  unsigned score = 0;
  for (const Segment &segment : segments)
    score += segment.alternatives.front() == "**" ? 0 : segment.globs.empty() ? 100 : 10;
  return score + (params || results ? 1 : 0);
}
