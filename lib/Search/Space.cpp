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

//===----------------------------------------------------------------------===//
// The spaces of several strategies
//===----------------------------------------------------------------------===//

Spaces::Spaces(llvm::ArrayRef<sema::BoundSearch> searches) : searches(searches), total(0) {
  for (const sema::BoundSearch &search : searches) {
    const Space &space = spaces.emplace_back(search);
    firsts.push_back(total.value_or(0));
    std::optional<size_t> count = space.count();
    size_t sum;
    total = total && count && !__builtin_add_overflow(*total, *count, &sum) ? std::optional(sum) : std::nullopt;
    std::vector<size_t> &own = ruleOfSpace.emplace_back();
    for (size_t rule = 0; rule != space.countRules(); ++rule) {
      auto known = llvm::find_if(
          rules, [&](auto of) { return spaces[of.first].describeRule(of.second) == space.describeRule(rule); });
      own.push_back(known - rules.begin());
      if (known == rules.end())
        rules.emplace_back(spaces.size() - 1, rule);
    }
  }
  if (hasStrategies())
    names.push_back("strategy");
  auto add = [&](const std::string &name) {
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  };
  for (const sema::BoundSearch &search : searches)
    for (const sema::SearchedName &name : search.names)
      add(name.name);
  for (const sema::BoundSearch &search : searches)
    for (const sema::FollowingName &name : search.following)
      add(name.name);
}

Spaces::Place Spaces::locate(size_t number) const {
  size_t space = llvm::upper_bound(firsts, number) - firsts.begin() - 1;
  return {space, number - firsts[space]};
}

std::string Spaces::describeRule(size_t rule) const {
  return spaces[rules[rule].first].describeRule(rules[rule].second);
}

llvm::SMLoc Spaces::getLocation(size_t rule) const {
  auto [space, number] = rules[rule];
  const sema::BoundSearch &search = searches[space];
  return number < search.following.size() ? search.following[number].range.Start
                                          : search.requirements[number - search.following.size()].range.Start;
}

std::optional<size_t> Spaces::findRule(size_t number, std::vector<CandidateValue> &slots) const {
  Place place = locate(number);
  slots.resize(searches[place.space].countSlots());
  std::optional<size_t> rule = spaces[place.space].findRule(place.number, slots);
  return rule ? std::optional(ruleOfSpace[place.space][*rule]) : std::nullopt;
}

std::optional<__int128> Spaces::findMostMemory(size_t number, llvm::ArrayRef<CandidateValue> slots,
                                               size_t *rule) const {
  size_t space = locate(number).space, own = 0;
  std::optional<__int128> most = spaces[space].findMostMemory(slots, &own);
  if (most && rule)
    *rule = ruleOfSpace[space][own];
  return most;
}

std::optional<size_t> Spaces::findRuleOfReport(size_t number, llvm::ArrayRef<Rational> records) const {
  Place place = locate(number);
  const sema::BoundSearch &search = searches[place.space];
  std::vector<CandidateValue> slots;
  findRule(number, slots);
  for (size_t i = 0; i != records.size(); ++i)
    slots[search.getFirstRecord() + i].number = records[i];
  for (size_t i = 0; i != search.requirements.size(); ++i) {
    if (!search.requirements[i].needsReport)
      continue;
    std::optional<CandidateValue> holds = search.requirements[i].condition.evaluate(slots);
    if (!holds || !holds->isTrue())
      return ruleOfSpace[place.space][search.following.size() + i];
  }
  return std::nullopt;
}

std::vector<std::string> Spaces::describe(size_t number) const {
  Place place = locate(number);
  const sema::BoundSearch &search = searches[place.space];
  std::vector<std::string> own = spaces[place.space].describe(place.number), texts(names.size());
  for (size_t i = 0; i != own.size(); ++i) {
    size_t numNames = search.names.size();
    const std::string &name = i < numNames ? search.names[i].name : search.following[i - numNames].name;
    texts[llvm::find(names, name) - names.begin()] = own[i];
  }
  if (hasStrategies())
    texts.front() = search.strategy.label;
  return texts;
}

bool Spaces::varies(size_t name) const {
  if (hasStrategies() && name == 0)
    return true;
  std::optional<std::string> only;
  for (const sema::BoundSearch &search : searches) {
    auto known = llvm::find_if(search.names, [&](const sema::SearchedName &of) { return of.name == names[name]; });
    if (known == search.names.end() || known->values.size() > 1 || (only && *only != known->values.front().getText()))
      return true;
    only = known->values.front().getText();
  }
  return false;
}
