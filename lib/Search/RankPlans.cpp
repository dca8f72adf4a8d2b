//===- RankPlans.cpp - the best plans, and why not the others -------------===//
#include "Searcher.h"
#include "stage/AST/AST.h"
#include "stage/Search/Diagnostics.h"
#include "stage/Support/Table.h"
#include "llvm/Support/Regex.h"
#include <cmath>
#include <map>

using namespace stage;
using sema::CandidateValue;
using State = CandidateState;

bool Searcher::isBetter(const FoundPlan &a, const FoundPlan &b) const {
  double left = getRecord(a, 0), right = getRecord(b, 0);
  return left != right ? left < right : a.number < b.number;
}

void Searcher::rank() {
  for (Candidate &candidate : candidates)
    if (candidate.state == State::Found)
      result.best.push_back(*candidate.plan);
  result.numFit = result.best.size();
  llvm::sort(result.best, [&](const FoundPlan &a, const FoundPlan &b) { return isBetter(a, b); });
  if (!isFront()) {
    result.best.resize(std::min(result.best.size(), request.top));
    return;
  }
  // Of plans that come later in the first objective those stay that are better in the second one than all before.
  std::vector<FoundPlan> front;
  for (FoundPlan &plan : result.best) {
    bool isEqual = !front.empty() && getRecord(front.back(), 0) == getRecord(plan, 0);
    if (front.empty() || getRecord(plan, 1) < getRecord(front.back(), 1)) {
      if (isEqual)
        front.pop_back();
      front.push_back(std::move(plan));
    }
  }
  auto isOfFront = [&](size_t number) {
    return llvm::any_of(front, [&](const FoundPlan &plan) { return plan.number == number; });
  };
  for (const Candidate &candidate : candidates)
    if (candidate.state == State::Found && !isOfFront(candidate.number))
      result.behindFront.emplace_back(candidate.plan->records[result.getObjectives()[0]],
                                      candidate.plan->records[result.getObjectives()[1]]);
  result.best = std::move(front);
}

void Searcher::findNeighbors(SessionThreads &threads) {
  auto [own, ofBest] = spaces->locate(result.best.front().number);
  const Space &space = spaces->get(own);
  std::vector<size_t> digits = space.decode(ofBest);
  std::vector<Candidate> tried;
  std::vector<CandidateValue> slots;
  for (size_t i = 0; i != digits.size(); ++i) {
    const sema::SearchedName &name = result.spaces[own].names[i];
    for (size_t value = 0; value != name.values.size(); ++value) {
      if (value == digits[i])
        continue;
      std::vector<size_t> changed = digits;
      changed[i] = value;
      size_t number = spaces->getFirst(own) + space.encode(changed);
      NeighborPlan &neighbor = result.neighbors.emplace_back();
      neighbor.name = name.name;
      neighbor.from = name.values[digits[i]].getText();
      neighbor.to = name.values[value].getText();
      Candidate &candidate = tried.emplace_back();
      candidate.number = number;
      if (std::optional<size_t> rule = spaces->findRule(number, slots)) {
        neighbor.reason = spaces->describeRule(*rule);
        candidate.state = State::Excluded;
        continue;
      }
      auto known = llvm::partition_point(candidates, [&](const Candidate &of) { return of.number < number; });
      bool isKnown = known != candidates.end() && known->number == number;
      candidate = isKnown ? *known : makeCandidate(number, slots);
    }
  }
  threads.forEach(tried.size(), [&](Session &own, size_t i) {
    Candidate &candidate = tried[i];
    if (candidate.isOpen() || candidate.state == State::TooSlow ||
        (candidate.state == State::TooLarge && !candidate.isExact))
      compile(own, candidate);
    if (candidate.state == State::TooLarge && !candidate.isExact)
      compile(own, candidate, Depth::Memory);
  });
  for (size_t i = 0; i != tried.size(); ++i) {
    NeighborPlan &neighbor = result.neighbors[i];
    if (tried[i].plan)
      neighbor.plan = *tried[i].plan;
    if (neighbor.plan || !neighbor.reason.empty())
      continue;
    neighbor.reason = tried[i].state == State::TooLarge  ? "needs " + formatBytes(tried[i].memory)
                      : tried[i].state == State::Refused ? "refused [" + tried[i].refusal + "]"
                                                         : spaces->describeRule(tried[i].rule);
  }
  addOtherStrategies();
}

/// The best plan of each other strategy, of those that were timed, or why there is none.
void Searcher::addOtherStrategies() {
  size_t own = spaces->locate(result.best.front().number).space;
  for (size_t space = 0; space != result.spaces.size(); ++space) {
    if (space == own)
      continue;
    NeighborPlan &neighbor = result.neighbors.emplace_back();
    neighbor.name = result.names.front();
    neighbor.from = result.spaces[own].strategy.label;
    neighbor.to = result.spaces[space].strategy.label;
    bool hasSlow = false, hasOpen = false;
    const Candidate *nearest = nullptr, *refused = nullptr;
    for (const Candidate &candidate : listCandidates(space)) {
      if (candidate.plan && (!neighbor.plan || isBetter(*candidate.plan, *neighbor.plan)))
        neighbor.plan = *candidate.plan;
      hasSlow |= candidate.state == State::TooSlow;
      hasOpen |= candidate.isOpen();
      if (candidate.state == State::TooLarge && candidate.isExact && (!nearest || candidate.memory < nearest->memory))
        nearest = &candidate;
      if (candidate.state == State::Refused && !refused)
        refused = &candidate;
    }
    neighbor.reason = hasSlow   ? "takes longer than those shown, by a lower bound"
                      : hasOpen ? "was not compiled"
                      : nearest ? "needs " + formatBytes(nearest->memory)
                      : refused ? "refused [" + refused->refusal + "]"
                                : "requirements allow none";
  }
}

/// Why candidates are no plans, by rules in their order, then by what the compiler says, in that of its codes.
void Searcher::count() {
  std::map<std::string, size_t> refused;
  for (const Candidate &candidate : candidates) {
    if (candidate.state == State::Excluded)
      ++numByRule[candidate.rule];
    else if (candidate.state == State::Refused)
      ++refused[candidate.refusal];
    else
      result.numTooSlow += candidate.state == State::TooSlow;
  }
  for (size_t rule = 0; rule != numByRule.size(); ++rule)
    if (numByRule[rule])
      result.excluded.push_back({spaces->describeRule(rule), numByRule[rule]});
  for (const auto &[code, number] : refused)
    result.excluded.push_back({"refused [" + code + "]", number});
}

/// `, as with gpus = 60, tp = 8`: of the first candidate that a rule excludes, the values that the rule names.
std::string Searcher::describeExample(size_t rule) const {
  std::string text = spaces->describeRule(rule), example;
  std::vector<sema::CandidateValue> slots;
  constexpr size_t mostTried = 1'000'000;
  for (size_t number = 0; number != std::min<size_t>(result.numCandidates, mostTried); ++number) {
    if (spaces->findRule(number, slots) != rule)
      continue;
    std::vector<std::string> values = spaces->describe(number);
    for (size_t i = 0; i != result.names.size() && i != values.size(); ++i) {
      llvm::Regex word("(^|[^a-zA-Z0-9_.])" + result.names[i] + "($|[^a-zA-Z0-9_])");
      if (bool isLeft = llvm::StringRef(text).contains("'" + result.names[i] + " = "); !isLeft && word.match(text))
        example += (example.empty() ? ", as with " : ", ") + result.names[i] + " = " + values[i];
    }
    break;
  }
  return example;
}

/// No plan is there: why.
bool Searcher::reportNothing() {
  std::string numCandidates = formatCount(result.numCandidates);
  if (result.isLimited) {
    session.getDiags().report(SMLoc(), diag::SearchLimited)
        << formatCount(result.numCompiled) << formatCount(result.numUndecided);
    return false;
  }
  if (result.numTooLarge && result.nearest) {
    std::string plan;
    for (size_t i = 0; i != result.names.size(); ++i)
      if (!result.nearest->values[i].empty())
        plan += (plan.empty() ? "" : ", ") + result.names[i] + " = " + result.nearest->values[i];
    session.getDiags().report(jobPlace, diag::NothingFits)
        << formatCount(result.numTooLarge) << plan << formatBytes(result.nearest->needs)
        << formatBytes(result.nearest->limit);
    return false;
  }
  DiagnosticBuilder error = session.getDiags().report(jobPlace, diag::EmptySearch) << numCandidates;
  for (size_t rule = 0; rule != numByRule.size(); ++rule)
    if (numByRule[rule])
      error.note(spaces->getLocation(rule), diag::ExcludedHere)
          << formatCount(numByRule[rule]) << spaces->describeRule(rule) + describeExample(rule);
  for (const ExcludedBy &excluded : result.excluded)
    if (llvm::StringRef(excluded.rule).startswith("refused"))
      error.note(SMLoc(), diag::ExcludedHere) << formatCount(excluded.count) << excluded.rule;
  return false;
}

bool Searcher::checkRecords() {
  for (unsigned record : result.getObjectives()) {
    if (!std::isnan(result.best.front().records[record]))
      continue;
    llvm::StringRef name = sema::getSearchRecords()[record].name;
    session.getDiags().report(SMLoc(), diag::RecordMissing)
        << name
        << (name == "cost"     ? "'price'"
            : name == "energy" ? "'power.busy' and 'power.idle'"
                               : "'flops' of the type of activations");
    return false;
  }
  return true;
}
