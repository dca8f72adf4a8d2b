//===- Space.cpp - the candidates of a search -----------------------------===//
#include "Space.h"

using namespace stage;
using sema::CandidateValue;

std::optional<size_t> Space::count() const {
  size_t count = 1;
  for (const sema::SearchedName &name : search.names)
    if (__builtin_mul_overflow(count, name.values.size(), &count))
      return std::nullopt;
  return count;
}

std::vector<size_t> Space::decode(size_t number) const {
  std::vector<size_t> digits(search.names.size());
  for (size_t i = digits.size(); i-- > 0;) {
    size_t radix = search.names[i].values.size();
    digits[i] = number % radix;
    number /= radix;
  }
  return digits;
}

size_t Space::encode(llvm::ArrayRef<size_t> digits) const {
  size_t number = 0;
  for (size_t i = 0; i != digits.size(); ++i)
    number = number * search.names[i].values.size() + digits[i];
  return number;
}

std::string Space::describeRule(size_t rule) const {
  if (rule < search.following.size()) {
    const sema::FollowingName &follows = search.following[rule];
    return "'" + follows.name + " = " + follows.formula + "' is no whole number";
  }
  const sema::SearchRequirement &requirement = search.requirements[rule - search.following.size()];
  return requirement.isOne ? "the mesh has other than 'gpus' ranks" : "not: " + requirement.text;
}

std::optional<size_t> Space::findRule(size_t number, llvm::MutableArrayRef<CandidateValue> slots) const {
  size_t numNames = search.names.size();
  for (size_t i = numNames; i-- > 0;) {
    const std::vector<sema::SearchedValue> &values = search.names[i].values;
    slots[i] = values[number % values.size()].value;
    number /= values.size();
  }
  for (size_t i = 0; i != search.following.size(); ++i) {
    std::optional<CandidateValue> value = search.following[i].value.evaluate(slots);
    if (!value || value->word || !value->number.isInteger() || value->number.num < 1)
      return i;
    slots[numNames + i] = *value;
  }
  for (size_t i = 0; i != search.requirements.size(); ++i) {
    const sema::SearchRequirement &requirement = search.requirements[i];
    if (requirement.needsReport)
      continue;
    std::optional<CandidateValue> value = requirement.condition.evaluate(slots);
    bool holds = value && (requirement.isOne ? !value->word && value->number == Rational::integer(1) : value->isTrue());
    if (!holds)
      return search.following.size() + i;
  }
  return std::nullopt;
}

std::optional<__int128> Space::findMostMemory(llvm::ArrayRef<CandidateValue> slots, size_t *rule) const {
  std::optional<__int128> most;
  for (size_t i = 0; i != search.requirements.size(); ++i) {
    if (!search.requirements[i].mostMemory)
      continue;
    std::optional<CandidateValue> value = search.requirements[i].mostMemory->evaluate(slots);
    if (!value || value->word || (most && *most <= value->number.floor().num))
      continue;
    most = value->number.floor().num;
    if (rule)
      *rule = search.following.size() + i;
  }
  return most;
}

std::vector<std::string> Space::describe(size_t number) const {
  std::vector<CandidateValue> slots(search.countSlots());
  findRule(number, slots);
  std::vector<size_t> digits = decode(number);
  std::vector<std::string> texts;
  for (size_t i = 0; i != digits.size(); ++i)
    texts.push_back(search.names[i].values[digits[i]].getText());
  for (size_t i = 0; i != search.following.size(); ++i)
    texts.push_back(slots[digits.size() + i].number.str());
  return texts;
}
