//===- ValueNames.cpp - names that tell the values of a list apart --------===//
#include "ValueNames.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/StringMap.h"
#include <set>

using namespace stage;

/// The modules that a body calls: `attn`, `moe`. Numbers are iterations that are made again together.
static std::set<std::string> listModules(const Op &loop, const Block &body) {
  std::string prefix = joinPath(loop.scope, loop.name) + ".";
  std::set<std::string> modules;
  for (auto &op : body)
    if (llvm::StringRef scope = op->scope; scope.consume_front(prefix))
      if (llvm::StringRef module = scope.split('.').first; !llvm::all_of(module, llvm::isDigit))
        modules.insert(module.str());
  return modules;
}

std::string stage::describeKind(const Op &loop, unsigned number) {
  if (loop.bodies.size() < 2)
    return "";
  std::vector<std::string> kinds;
  std::vector<std::set<std::string>> modules;
  for (auto &body : loop.bodies)
    modules.push_back(listModules(loop, *body));
  for (const std::set<std::string> &own : modules) {
    std::string kind;
    for (const std::string &module : own)
      if (!llvm::all_of(modules, [&](const std::set<std::string> &other) { return other.count(module) != 0; }))
        kind += (kind.empty() ? "" : ", ") + module;
    kinds.push_back(kind);
  }
  return llvm::count(kinds, kinds[number]) == 1 ? kinds[number] : "";
}

/// `layers (moe).h`: with the kind of each layer around, where layers differ.
static std::string nameWithKinds(const Value &value, std::string name) {
  const Block *block = value.getBlock();
  for (const Op *loop = block ? block->getParent() : nullptr; loop; loop = block ? block->getParent() : nullptr) {
    std::string path = joinPath(loop->scope, loop->name), kind = describeKind(*loop, block->getNumber());
    if (!kind.empty() && llvm::StringRef(name).startswith(path + "."))
      name = path + " (" + kind + ")" + name.substr(path.size());
    block = loop->getBlock();
  }
  return name;
}

/// `gelu(linear(x))`: what an op without a named result reads first, a few ops deep.
static std::string describeSource(const Value &value, unsigned depth) {
  const Op *op = value.getOp();
  if (!value.path.empty() || !op || !op->getNumOperands() || !depth)
    return llvm::StringRef(describe(value)).rsplit('.').second.empty()
               ? describe(value)
               : llvm::StringRef(describe(value)).rsplit('.').second.str();
  llvm::StringRef name = op->def ? llvm::StringRef(op->def->name) : getName(op->kind);
  return (name + "(" + describeSource(*op->getOperand(0), depth - 1) + ")").str();
}

static bool isNamed(const Value &value) { return !value.path.empty() || !value.getOp(); }

/// Applies `refine` to the names that stand more than once, where that tells some of them apart.
static void refineEqual(std::vector<std::string> &names, llvm::function_ref<std::string(size_t)> refine) {
  llvm::StringMap<llvm::SmallVector<size_t, 2>> equal;
  for (size_t i = 0; i < names.size(); ++i)
    equal[names[i]].push_back(i);
  for (const auto &entry : equal) {
    std::vector<std::string> refined;
    for (size_t i : entry.getValue())
      refined.push_back(refine(i));
    if (llvm::count(refined, refined.front()) != int64_t(refined.size()))
      for (auto [i, name] : llvm::zip(entry.getValue(), refined))
        names[i] = name;
  }
}

template <typename Entry>
static std::vector<std::string> nameAll(llvm::ArrayRef<Entry> entries,
                                        llvm::function_ref<const Value *(const Entry &)> valueOf,
                                        llvm::function_ref<std::string(const Entry &)> describeEntry) {
  std::vector<std::string> names;
  for (const Entry &entry : entries)
    names.push_back(describeEntry(entry));
  refineEqual(names, [&](size_t i) {
    const Value *value = valueOf(entries[i]);
    return value ? nameWithKinds(*value, names[i]) : names[i];
  });
  refineEqual(names, [&](size_t i) {
    const Value *value = valueOf(entries[i]);
    constexpr unsigned mostOps = 4;
    return value && !isNamed(*value) && value->getOp()->getNumOperands()
               ? names[i] + "(" + describeSource(*value->getOp()->getOperand(0), mostOps) + ")"
               : names[i];
  });
  return names;
}

/// The second of equal names is `name#2`.
static void number(std::vector<std::string> &names) {
  llvm::StringMap<unsigned> known;
  for (std::string &name : names)
    if (unsigned count = ++known[name]; count > 1)
      name += "#" + std::to_string(count);
}

std::vector<std::string> stage::nameValues(llvm::ArrayRef<SavedValue> values) {
  std::vector<std::string> names = nameAll<SavedValue>(
      values, [](const SavedValue &saved) { return saved.value; },
      [](const SavedValue &saved) { return describe(*saved.value); });
  number(names);
  return names;
}

std::vector<std::string> stage::nameValues(llvm::ArrayRef<LiveValue> values, bool withClasses) {
  std::vector<std::string> names = nameAll<LiveValue>(
      values, [](const LiveValue &live) { return live.value; }, [](const LiveValue &live) { return describe(live); });
  if (!withClasses)
    return names;
  refineEqual(names, [&](size_t i) { return names[i] + " (" + getName(values[i].kind).str() + ")"; });
  number(names);
  return names;
}
