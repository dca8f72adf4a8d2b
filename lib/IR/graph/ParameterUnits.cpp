//===- ParameterUnits.cpp - what is gathered at once ----------------------===//
#include "stage/IR/graph/ParameterUnits.h"
#include "stage/IR/graph/Paths.h"
#include "stage/IR/graph/Rule.h"

using namespace stage;

ParameterUnits::ParameterUnits(const Rule &rule) {
  for (const PathPattern &pattern : rule.units) {
    std::string text = pattern.getText();
    for (size_t at; (at = text.find("[*]")) != std::string::npos;)
      text.erase(at, 3);
    if (text.find_first_of("*{ ") == std::string::npos)
      paths.try_emplace(text, &pattern);
    else
      others.push_back(&pattern);
  }
}

/// The first one that means a path.
const PathPattern *ParameterUnits::findPattern(llvm::StringRef path) const {
  const PathPattern *found = paths.lookup(path);
  for (const PathPattern *pattern : others)
    if ((!found || pattern < found) && pattern->matchesPath(path))
      return pattern;
  return found;
}

std::optional<std::pair<llvm::StringRef, const PathPattern *>> ParameterUnits::find(llvm::StringRef path) const {
  for (; !path.empty(); path = getScope(path))
    if (const PathPattern *pattern = findPattern(path))
      return std::pair(path, pattern);
  return std::nullopt;
}
