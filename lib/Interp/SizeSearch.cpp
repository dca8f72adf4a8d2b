//===- SizeSearch.cpp - small values under requirements -------------------===//
#include "SizeSearch.h"
#include "stage/Interp/Prove.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace stage;
using namespace stage::interp;

constexpr int64_t largest = 64;
/// Values that are tried: under requirements alone, and beside these under relations, all of them or up to a further
/// one.
constexpr int64_t mostAttempts = 100000, mostWithRelations = 30000, mostWithOneMore = 4000;

bool Requirement::holds(const SizeBinding &binding, int64_t least) const {
  if (kind == Kind::Kept)
    return relation->holds(binding);
  if (kind == Kind::Owed)
    return isMet(owed, binding);
  SizeValue value = evaluate(size, binding);
  if (!value || !value.value.isInteger())
    return false;
  return kind == Kind::Whole || (value.value.num >= least && value.value.num % parts == 0);
}

std::string Requirement::describe() const {
  std::string text = size.str();
  if (kind == Kind::Split && parts > 1)
    return text + " comes out even over (" + over + ")";
  if (kind != Kind::Owed)
    return text + " is a whole number";
  if (llvm::StringRef(owed.reason).startswith("require "))
    return owed.reason;
  switch (owed.kind) {
  case Obligations::Kind::Divides:
    return text + " is divisible by " + owed.right.str();
  case Obligations::Kind::Equal:
    return text + " equals " + owed.right.str();
  case Obligations::Kind::AtMost:
    return text + " is at most " + owed.right.str();
  case Obligations::Kind::Positive:
    return text + " is positive";
  }
  llvm_unreachable("covered switch");
}

llvm::SmallVector<Size, 2> Requirement::getSizes() const {
  llvm::SmallVector<Size, 2> sizes;
  for (Size of : {size, owed.right, relation ? relation->left : Size(), relation ? relation->right : Size()})
    if (of)
      sizes.push_back(of);
  if (relation && relation->test)
    for (auto &[name, measured] : relation->measures)
      sizes.push_back(measured);
  return sizes;
}

SizeSearch::SizeSearch(const SizeBinding &given, SizeBinding binding, llvm::ArrayRef<std::string> symbols,
                       std::vector<Requirement> all, int64_t apart)
    : given(given), binding(std::move(binding)), symbols(symbols.begin(), symbols.end()), requirements(std::move(all)),
      apart(apart) {
  llvm::StringMap<unsigned> numbers;
  for (unsigned i = 0; i < symbols.size(); ++i)
    numbers[symbols[i]] = i;
  for (Requirement &requirement : requirements) {
    std::set<unsigned> used;
    for (Size size : requirement.getSizes())
      for (const std::string &name : collectSymbols(size))
        if (auto it = numbers.find(name); it != numbers.end())
          used.insert(it->second);
    requirement.symbols.assign(used.begin(), used.end());
  }
}

std::optional<SizeBinding> SizeSearch::run(std::string &obstacle) {
  llvm::EquivalenceClasses<unsigned> tied;
  for (unsigned i = 0; i < symbols.size(); ++i)
    tied.insert(i);
  bool isGood = true;
  for (Requirement &requirement : requirements) {
    for (unsigned symbol : requirement.symbols)
      tied.unionSets(requirement.symbols.front(), symbol);
    // What has no symbol holds or does not; a dim of a fixed size 1 is none of our doing.
    if (requirement.symbols.empty() && requirement.kind != Requirement::Kind::Kept && !requirement.holds(binding, 0)) {
      ++requirement.failures;
      isGood = false;
    }
  }
  std::vector<std::vector<unsigned>> members(symbols.size()), tests(symbols.size()), relations(symbols.size());
  for (unsigned i = 0; i < symbols.size(); ++i)
    members[tied.getLeaderValue(i)].push_back(i);
  for (unsigned i = 0; i < requirements.size(); ++i)
    if (!requirements[i].symbols.empty())
      (requirements[i].kind == Requirement::Kind::Kept ? relations
                                                       : tests)[tied.getLeaderValue(requirements[i].symbols.front())]
          .push_back(i);
  for (unsigned leader = 0; isGood && leader < symbols.size(); ++leader)
    isGood = members[leader].empty() || solve(members[leader], tests[leader], relations[leader]);
  if (isGood)
    return binding;
  auto worst = std::max_element(requirements.begin(), requirements.end(), [](auto &a, auto &b) {
    auto count = [](const Requirement &r) { return r.kind == Requirement::Kind::Kept ? 0 : r.failures; };
    return count(a) < count(b);
  });
  obstacle = worst == requirements.end() ? "nothing" : worst->describe();
  return std::nullopt;
}

bool SizeSearch::solve(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests,
                       llvm::ArrayRef<unsigned> relations) {
  if (!relations.empty()) {
    std::vector<unsigned> all(tests.begin(), tests.end());
    all.insert(all.end(), relations.begin(), relations.end());
    arrange(group, all);
    least = 2;
    budget = mostWithRelations;
    if (assign(0)) {
      lower(all);
      return true;
    }
  }
  if (!findValues(group, tests, mostAttempts))
    return false;
  if (!relations.empty())
    keepOneByOne(group, tests, relations);
  return true;
}

bool SizeSearch::findValues(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests, int64_t attempts) {
  arrange(group, tests);
  for (int64_t smallest : {2, 1}) {
    least = smallest;
    budget = attempts;
    if (assign(0))
      return true;
  }
  return descend(tests);
}

/// The values of a group, which are free again.
std::vector<int64_t> SizeSearch::takeBack(llvm::ArrayRef<unsigned> group) {
  std::vector<int64_t> values;
  for (unsigned symbol : group) {
    values.push_back(*binding.lookup(symbols[symbol]));
    if (auto place = taken.find(values.back()); place != taken.end())
      taken.erase(place);
  }
  return values;
}

void SizeSearch::adopt(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<int64_t> values) {
  for (auto [symbol, value] : llvm::zip(group, values)) {
    binding.bind(symbols[symbol], value);
    taken.insert(value);
  }
}

/// From values that satisfy `tests`.
void SizeSearch::keepOneByOne(llvm::ArrayRef<unsigned> group, std::vector<unsigned> tests,
                              llvm::ArrayRef<unsigned> relations) {
  int64_t smallest = least;
  for (unsigned relation : relations) {
    tests.push_back(relation);
    if (requirements[relation].relation->holds(binding))
      continue;
    std::vector<int64_t> values = takeBack(group);
    arrange(group, tests);
    least = smallest;
    budget = mostWithOneMore;
    if (assign(0))
      continue;
    tests.pop_back();
    adopt(group, values);
  }
}

/// Puts the symbols of a group in an order in which requirements can be tried early.
void SizeSearch::arrange(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests) {
  order.clear();
  due.clear();
  std::vector<unsigned> missing(requirements.size());
  std::vector<std::vector<unsigned>> testsOf(symbols.size());
  for (unsigned test : tests) {
    missing[test] = requirements[test].symbols.size();
    for (unsigned symbol : requirements[test].symbols)
      testsOf[symbol].push_back(test);
  }
  // Symbols wait under (requirements they would complete, requirements they share with what is bound).
  std::vector<std::pair<int64_t, int64_t>> rating(symbols.size());
  std::set<std::tuple<int64_t, int64_t, unsigned>> waiting;
  for (unsigned symbol : group) {
    rating[symbol] = {0, -int64_t(testsOf[symbol].size())};
    waiting.emplace(rating[symbol].first, rating[symbol].second, symbol);
  }
  while (!waiting.empty()) {
    unsigned symbol = std::get<2>(*waiting.begin());
    waiting.erase(waiting.begin());
    order.push_back(symbol);
    std::vector<unsigned> &now = due.emplace_back();
    for (unsigned test : testsOf[symbol]) {
      if (--missing[test] == 0)
        now.push_back(test);
      if (missing[test] != 1)
        continue;
      for (unsigned other : requirements[test].symbols)
        if (waiting.erase({rating[other].first, rating[other].second, other})) {
          --rating[other].first;
          waiting.emplace(rating[other].first, rating[other].second, other);
        }
    }
  }
}

/// Values to try for a symbol, the best first.
std::vector<int64_t> SizeSearch::listCandidates(unsigned position) const {
  const std::string &name = symbols[order[position]];
  std::set<std::pair<int64_t, int64_t>> rated;
  auto add = [&](int64_t value) { rated.emplace(value + (taken.count(value) ? apart : 0), value); };
  for (int64_t value = 1; value <= largest; ++value)
    add(value);
  // What a requirement compares the symbol with, where that is larger: the T of `S >= T`, the 130 of `S - 130 > 0`.
  SizeBinding without = binding;
  without.bind(name, 0);
  for (unsigned test : due[position])
    for (Size size : requirements[test].getSizes()) {
      SizeValue other = evaluate(size, without);
      constexpr int64_t most = int64_t(1) << 40;
      if (!other)
        continue;
      Rational rounded = other.value.num < 0 ? other.value.floor() : other.value.ceil();
      if (rounded.num > most || rounded.num < -most)
        continue;
      int64_t compared = std::abs(int64_t(rounded.num));
      for (int64_t times : {1, 2, 3, 4})
        for (int64_t more : {0, 1, 2})
          if (compared * times + more > largest)
            add(compared * times + more);
    }
  if (auto value = given.lookup(name))
    for (int64_t half = *value; half > largest; half = half % 2 ? 0 : half / 2)
      add(half);
  std::vector<int64_t> values;
  for (auto [rating, value] : rated)
    values.push_back(value);
  return values;
}

bool SizeSearch::assign(unsigned position) {
  if (position == order.size())
    return true;
  for (int64_t value : listCandidates(position)) {
    if (budget-- <= 0)
      return false;
    binding.bind(symbols[order[position]], value);
    if (!check(due[position]))
      continue;
    auto place = taken.insert(value);
    if (assign(position + 1))
      return true;
    taken.erase(place);
  }
  return false;
}

bool SizeSearch::check(llvm::ArrayRef<unsigned> tests) {
  for (unsigned test : tests)
    if (!requirements[test].holds(binding, least)) {
      ++requirements[test].failures;
      return false;
    }
  return true;
}

/// Makes each value as small as the others allow, until none gets smaller. One that no other symbol has stays so.
void SizeSearch::lower(llvm::ArrayRef<unsigned> tests) {
  std::vector<std::vector<unsigned>> testsOf(symbols.size());
  for (unsigned test : tests)
    for (unsigned symbol : requirements[test].symbols)
      testsOf[symbol].push_back(test);
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (unsigned symbol : order) {
      const std::string &name = symbols[symbol];
      const int64_t now = *binding.lookup(name);
      bool isAlone = apart && taken.count(now) == 1;
      for (int64_t value = 2; value < now; ++value) {
        if (isAlone && taken.count(value))
          continue;
        binding.bind(name, value);
        if (check(testsOf[symbol])) {
          taken.erase(taken.find(now));
          taken.insert(value);
          isSmaller = true;
          break;
        }
        binding.bind(name, now);
      }
    }
  }
}

/// From the sizes of the job downwards.
bool SizeSearch::descend(llvm::ArrayRef<unsigned> tests) {
  least = 1;
  for (unsigned symbol : order) {
    auto value = given.lookup(symbols[symbol]);
    if (!value)
      return false;
    binding.bind(symbols[symbol], *value);
  }
  if (!check(tests))
    return false;
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (unsigned position = 0; position < order.size(); ++position) {
      const std::string &name = symbols[order[position]];
      int64_t now = *binding.lookup(name);
      for (int64_t value : listCandidates(position)) {
        if (value >= now)
          continue;
        binding.bind(name, value);
        if (check(tests)) {
          isSmaller = true;
          break;
        }
        binding.bind(name, now);
      }
    }
  }
  return true;
}
