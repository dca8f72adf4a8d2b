//===- SizeQueries.cpp - what was asked of a binding ----------------------===//
#include "stage/Symbolic/SizeQueries.h"

using namespace stage;

void SizeBinding::note(llvm::StringRef symbol, std::optional<int64_t> value) const {
  queries->addLookup(symbol, value);
}

void SizeBinding::note(llvm::StringRef name, std::shared_ptr<const SizeTable> table) const {
  queries->addTable(name, std::move(table));
}

SizeCheck stage::checkValue(Size size, const SizeBinding &binding) {
  SizeQueries *queries = std::exchange(binding.queries, nullptr);
  SizeValue value = evaluate(size, binding);
  binding.queries = queries;
  SizeCheck outcome{value.error, value.symbol};
  if (value && isTooLarge(value.value))
    outcome.error = SizeError::Overflow;
  if (queries)
    queries->addCheck(size, outcome);
  return outcome;
}

void SizeQueries::addCheck(Size size, const SizeCheck &outcome) { checks.try_emplace(size, outcome); }

bool SizeQueries::agreesWith(const SizeBinding &binding) const {
  for (const auto &lookup : lookups)
    if (binding.lookup(lookup.first()) != lookup.second)
      return false;
  for (const auto &asked : tables) {
    std::shared_ptr<const SizeTable> table = binding.lookupTable(asked.first());
    if (table ? !asked.second || !(*table == *asked.second) : asked.second != nullptr)
      return false;
  }
  return llvm::all_of(checks, [&](const auto &check) { return checkValue(check.first, binding) == check.second; });
}
