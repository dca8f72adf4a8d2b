//===- ValueNames.cpp - names of values in the text of a graph ------------===//
//
// A name has to survive the way through text: the printer derives it from the path,
// the reader derives the path from the name where no path is written. Names with a
// path begin with a letter or `_`, names without one are numbers; a clash gets
// `.1`, `.2`, ..., which no component of a path contains. A gradient, whose path is
// that of its value with `.grad`, is called `q.grad`.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/text/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

ValueNames::ValueNames(const Graph &graph) {
  for (const Block &phase : graph.getPhases())
    visit(phase);
  for (const Block &block : graph.getMessageBlocks())
    visit(block);
}

void ValueNames::visit(const Block &block) {
  for (auto &argument : block.getArguments())
    add(*argument);
  for (auto &op : block) {
    for (auto &result : op->getResults())
      add(*result);
    for (auto &body : op->bodies)
      visit(*body);
  }
}

void ValueNames::add(const Value &value) {
  if (value.path.empty()) {
    names[&value] = std::to_string(numUnnamed++);
    return;
  }
  llvm::StringRef local = getLocalName(value.path);
  bool isGradient = local.consume_back(gradientSuffix);
  std::string base;
  for (char c : local)
    if (llvm::isAlnum(c) || c == '_')
      base += c;
  if (base.empty() || llvm::isDigit(base.front()))
    base.insert(base.begin(), 'v');
  if (isGradient)
    base += gradientSuffix;
  std::string name = base;
  while (!taken.try_emplace(name, 0).second)
    name = base + "." + std::to_string(++taken[base]);
  names[&value] = std::move(name);
}

llvm::StringRef ValueNames::get(const Value *value) const {
  auto it = names.find(value);
  return it == names.end() ? llvm::StringRef("<detached>") : llvm::StringRef(it->second);
}
