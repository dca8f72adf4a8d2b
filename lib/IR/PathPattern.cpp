//===- PathPattern.cpp - patterns over the paths of values ----------------===//
#include "stage/IR/PathPattern.h"

using namespace stage;

std::optional<PathPattern> PathPattern::parse(llvm::StringRef text) {
  PathPattern pattern;
  text = text.trim();
  if (text.consume_front("param "))
    pattern.params = true;
  else
    text.consume_front("result ");
  text = text.trim();
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
    if (part.empty() || part.contains('['))
      return std::nullopt;
    auto &alternatives = pattern.segments.emplace_back();
    if (part.consume_front("{")) {
      bool areCalls = part.consume_back("()");
      if (!part.consume_back("}"))
        return std::nullopt;
      llvm::SmallVector<llvm::StringRef, 4> names;
      part.split(names, ',');
      for (llvm::StringRef name : names)
        if (!name.empty())
          alternatives.push_back(name.str() + (areCalls ? "()" : ""));
    } else {
      alternatives.push_back(part.str());
    }
    if (alternatives.empty())
      return std::nullopt;
  }
  // `softmax()`, `{linear(), norm()}`, `{linear, norm}()`: all that stand last are ops, or none.
  auto isCall = [](llvm::StringRef name) { return name.endswith("()"); };
  for (const auto &alternatives : llvm::makeArrayRef(pattern.segments).drop_back())
    if (llvm::any_of(alternatives, isCall))
      return std::nullopt;
  auto &last = pattern.segments.back();
  if (llvm::any_of(last, isCall)) {
    if (!llvm::all_of(last, isCall))
      return std::nullopt;
    for (std::string &name : last)
      name.resize(name.size() - 2);
    pattern.ops = true;
  }
  return pattern;
}

/// `*` stands for any run of characters.
static bool matchGlob(llvm::StringRef glob, llvm::StringRef text) {
  if (glob.empty())
    return text.empty();
  if (glob.front() == '*') {
    for (size_t skip = 0; skip <= text.size(); ++skip)
      if (matchGlob(glob.drop_front(), text.drop_front(skip)))
        return true;
    return false;
  }
  return !text.empty() && glob.front() == text.front() && matchGlob(glob.drop_front(), text.drop_front());
}

bool PathPattern::matchSegments(llvm::ArrayRef<llvm::StringRef> path, size_t segment) const {
  if (segment == segments.size())
    return path.empty();
  if (segments[segment].front() == "**") {
    for (size_t skip = 0; skip <= path.size(); ++skip)
      if (matchSegments(path.drop_front(skip), segment + 1))
        return true;
    return false;
  }
  if (path.empty())
    return false;
  for (const std::string &alternative : segments[segment])
    if (matchGlob(alternative, path.front()) && matchSegments(path.drop_front(), segment + 1))
      return true;
  return false;
}

bool PathPattern::matches(llvm::StringRef path, bool isParam) const {
  if (ops || path.empty() || (params && !isParam))
    return false;
  llvm::SmallVector<llvm::StringRef, 6> parts;
  path.split(parts, '.');
  return matchSegments(parts, 0);
}

bool PathPattern::matchesOp(llvm::StringRef scope, llvm::StringRef name) const {
  if (!ops)
    return false;
  llvm::SmallVector<llvm::StringRef, 6> parts;
  if (!scope.empty())
    scope.split(parts, '.');
  parts.push_back(name.split('.').first); // without the number of a variant
  return matchSegments(parts, 0);
}

unsigned PathPattern::getSpecificity() const {
  unsigned score = 0;
  for (const auto &alternatives : segments) {
    llvm::StringRef first = alternatives.front();
    score += first == "**" ? 0 : first.contains('*') ? 10 : 100;
  }
  return score + (params ? 1 : 0);
}
