//===- NamedEntries.cpp - entries of machines and runtimes ----------------===//
#include "NamedEntries.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;

std::vector<std::string> stage::sema::replaceEntries(NamedEntries &entries, ArrayRef<std::string> names,
                                                     EntryOverride override) {
  std::vector<std::string> changes;
  for (const std::string &name : names)
    if (const ast::Expr *value = override(name)) {
      entries[name] = {value, nullptr};
      changes.push_back(name + " = " + ast::textOf(value));
    }
  return changes;
}

std::optional<EntryValue> stage::sema::evaluateEntry(Evaluator &evaluator, StringRef name, const NamedEntry &entry,
                                                     std::optional<Dimension> dimension, const Environment &env) {
  std::optional<CTValue> value = evaluator.evaluate(entry.value, entry.file ? Environment(*entry.file) : env);
  if (!value)
    return std::nullopt;
  if (dimension &&
      !evaluator.checkQuantity(*value, *dimension, /*isAnyRate=*/false, entry.value->range, "'" + name + "'"))
    return std::nullopt;
  std::optional<Rational> exact = dimension || value->isNumber() ? evaluator.getExact(*value) : std::nullopt;
  return EntryValue{std::move(*value), exact};
}

std::string stage::sema::describeChanges(StringRef name, ArrayRef<std::string> changes) {
  return name.str() + (changes.empty() ? "" : " with " + llvm::join(changes, ", "));
}
