//===- Slowness.cpp - ranks that compute slower than others ---------------===//
#include "stage/Tasks/Slowness.h"
#include "stage/Tasks/Diagnostics.h"
#include <map>

using namespace stage;

/// Ways in which rules hold together.
constexpr size_t maxSets = 4096;

Size stage::getSlowness(const Graph &graph, int64_t rank) {
  Size product = graph.sizes.one();
  for (const SlowRanks &slow : graph.slowRanks)
    if (llvm::all_of(slow.coordinates,
                     [&](auto &place) { return graph.mesh.getCoordinate(rank, place.first) == place.second; }))
      product = product * slow.factor;
  return product;
}

namespace {
/// Rules that some ranks have together, and the coordinates of these ranks.
struct RuleSet {
  llvm::SmallVector<unsigned, 4> rules;
  FixedCoordinates coordinates; ///< By axis.
};
} // namespace

/// Coordinates of both; nothing if they contradict each other.
static std::optional<FixedCoordinates> join(const FixedCoordinates &left,
                                            llvm::ArrayRef<std::pair<AxisId, int64_t>> right) {
  FixedCoordinates both = left;
  for (auto [axis, coordinate] : right) {
    auto known = llvm::find_if(both, [axis = axis](auto &place) { return place.first >= axis; });
    if (known == both.end() || known->first != axis)
      both.insert(known, {axis, coordinate});
    else if (known->second != coordinate)
      return std::nullopt;
  }
  return both;
}

/// The rules of a graph, those about the same ranks as one.
static std::vector<std::pair<FixedCoordinates, Size>> listRules(const Graph &graph) {
  std::vector<std::pair<FixedCoordinates, Size>> rules;
  std::map<FixedCoordinates, size_t> numbers;
  for (const SlowRanks &slow : graph.slowRanks) {
    FixedCoordinates coordinates(slow.coordinates.begin(), slow.coordinates.end());
    llvm::sort(coordinates);
    auto [number, fresh] = numbers.try_emplace(coordinates, rules.size());
    if (fresh)
      rules.emplace_back(coordinates, slow.factor);
    else
      rules[number->second].second = rules[number->second].second * slow.factor;
  }
  return rules;
}

/// The empty set first; at most maxSets + 1 of them.
static std::vector<RuleSet> listSets(llvm::ArrayRef<std::pair<FixedCoordinates, Size>> rules,
                                     const FixedCoordinates &common) {
  std::vector<RuleSet> sets = {{{}, common}};
  for (unsigned rule = 0; rule < rules.size(); ++rule)
    for (size_t i = 0, before = sets.size(); i < before && sets.size() <= maxSets; ++i)
      if (auto both = join(sets[i].coordinates, rules[rule].first)) {
        RuleSet larger = {sets[i].rules, std::move(*both)};
        larger.rules.push_back(rule);
        sets.push_back(std::move(larger));
      }
  return sets;
}

std::vector<SlownessClass> stage::classifyBySlowness(const Graph &graph, const FixedCoordinates &common) {
  std::vector<SlownessClass> classes;
  llvm::DenseMap<const SizeNode *, unsigned> numbers;
  std::vector<std::map<FixedCoordinates, int64_t>> counts;
  std::vector<std::pair<FixedCoordinates, Size>> rules = listRules(graph);
  for (const RuleSet &set : listSets(rules, common))
    for (uint64_t part = 0; part < uint64_t(1) << set.rules.size(); ++part) {
      Size slowness = graph.sizes.one();
      int64_t sign = 1;
      for (unsigned i = 0; i < set.rules.size(); ++i)
        if (part >> i & 1)
          slowness = slowness * rules[set.rules[i]].second;
        else
          sign = -sign;
      auto [number, fresh] = numbers.try_emplace(slowness.getNode(), classes.size());
      if (fresh) {
        classes.push_back({slowness, {}});
        counts.emplace_back();
      }
      counts[number->second][set.coordinates] += sign;
    }
  for (auto [one, count] : llvm::zip(classes, counts))
    for (auto &[coordinates, times] : count)
      if (times)
        one.sets.emplace_back(coordinates, times);
  llvm::erase_if(classes, [&](const SlownessClass &one) {
    int64_t ranks = 0;
    for (auto &[coordinates, times] : one.sets) {
      int64_t members = graph.mesh.getNumRanks();
      for (auto &place : coordinates)
        members /= graph.mesh[place.first].size;
      ranks += times * members;
    }
    return ranks == 0;
  });
  return classes;
}

bool stage::checkSlowRanks(const Graph &graph, DiagnosticEngine &diags) {
  if (listSets(listRules(graph), {}).size() <= maxSets)
    return true;
  diags.report(graph.slowRanks.back().loc, diag::TooManySlowRanks) << int64_t(maxSets);
  return false;
}
