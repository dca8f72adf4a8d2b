//===- SizeQueries.cpp - what was asked of a binding ----------------------===//
#include "stage/Symbolic/SizeQueries.h"

using namespace stage;

void SizeBinding::note(llvm::StringRef symbol, std::optional<int64_t> value) const { queries->addLookup(symbol, value); }

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
  return llvm::all_of(checks, [&](const auto &check) { return checkValue(check.first, binding) == check.second; });
}
