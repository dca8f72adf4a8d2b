//===- PrintSearch.cpp - what a search found, for people and programs -----===//
#include "Space.h"
#include "stage/Search/Search.h"
#include "stage/Support/Json.h"
#include "stage/Support/Records.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace stage;

static std::string formatNumber(double value, int digits) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, value);
  return text;
}

/// `+7.0`: a change in percent of a whole.
static std::string formatChange(double part, double whole) {
  double percent = whole > 0 ? part / whole * 100 : 0;
  return (percent >= 0 ? "+" : "") + formatNumber(percent, 1);
}

/// Names whose values differ, or could: those with one value alone are said once.
/// `missing` stands for those that a strategy does not have.
static Comparison makeComparison(const SearchResult &result, const char *missing) {
  Comparison comparison;
  std::vector<size_t> shown;
  for (size_t i = 0; i != result.names.size(); ++i)
    if (result.varies[i]) {
      shown.push_back(i);
      comparison.names.push_back(result.names[i]);
    }
  for (const FoundPlan &plan : result.best) {
    ComparedPlan row{result.job, {}, plan.costs, ""};
    for (size_t i : shown)
      row.values.push_back(plan.values[i].empty() ? missing : plan.values[i]);
    comparison.plans.push_back(std::move(row));
  }
  return comparison;
}

/// `dp = gpus / (pp * tp)`, and names with one value.
static void printHead(llvm::raw_ostream &os, const SearchResult &result) {
  os << "job " << result.job << ": " << formatCount(result.numCandidates) << " candidates";
  for (const sema::BoundSearch &space : result.spaces)
    for (const sema::FollowingName &follows : space.following) {
      os << ", " << follows.name << " = " << follows.formula;
      if (result.spaces.size() > 1)
        os << " (" << space.strategy.label << ')';
    }
  bool isFirst = true;
  for (size_t i = 0; i != result.names.size(); ++i)
    if (!result.varies[i]) {
      os << (isFirst ? "; " : ", ") << result.names[i] << " = " << result.best.front().values[i];
      isFirst = false;
    }
  os << '\n';
  if (result.isLimited)
    os << "limited: " << formatCount(result.numUndecided)
       << " candidates were not compiled, and a better plan may be among them\n";
}

static void printExcluded(llvm::raw_ostream &os, const SearchResult &result) {
  os << "\ncandidates\n";
  Table table({{"", Table::Right}, {"", Table::Left}}, 2);
  auto add = [&](size_t count, const std::string &what) {
    if (count)
      table.addRow({formatCount(count), what});
  };
  add(result.numFit, "fit, and have a time");
  add(result.numTooSlow, "take longer than those shown, by a lower bound of their step");
  if (result.numTooLarge) {
    std::string nearest;
    if (result.nearest)
      nearest =
          "; the nearest needs " + formatBytes(result.nearest->needs) + " of " + formatBytes(result.nearest->limit);
    add(result.numTooLarge, "do not fit into memory" + nearest);
  }
  for (const ExcludedBy &excluded : result.excluded)
    add(excluded.count, excluded.rule);
  add(result.numUndecided, "were not compiled");
  table.print(os, /*titles=*/false);
}

/// What changes most from one plan to another, in percent of the step of the first: `exposed all_gather +9.0, bubble
/// -2.0`.
static std::string describeChanges(const FoundPlan &from, const FoundPlan &to) {
  std::vector<std::pair<std::string, double>> changes;
  for (const auto &[name, ticks] : from.shares)
    changes.emplace_back(name, -double(ticks));
  for (const auto &[name, ticks] : to.shares) {
    auto known = llvm::find_if(changes, [&name = name](const auto &change) { return change.first == name; });
    if (known == changes.end())
      changes.emplace_back(name, double(ticks));
    else
      known->second += double(ticks);
  }
  llvm::stable_sort(changes, [](const auto &a, const auto &b) { return std::abs(a.second) > std::abs(b.second); });
  constexpr size_t most = 3;
  constexpr double least = 0.0005; // of the step
  double step = double(from.costs.time->step);
  std::string text;
  for (const auto &[name, ticks] : llvm::ArrayRef(changes).take_front(most))
    if (std::abs(ticks) > least * step)
      text += (text.empty() ? "" : ", ") + name + " " + formatChange(ticks, step);
  return text;
}

static void printNeighbors(llvm::raw_ostream &os, const SearchResult &result) {
  if (result.neighbors.empty())
    return;
  const FoundPlan &best = result.best.front();
  os << "\nthe first plan with one value changed; in % of its step\n";
  Table table({{"change", Table::Left}, {"step %", Table::Right}, {"memory", Table::Right}, {"where", Table::Left}}, 2);
  for (const NeighborPlan &neighbor : result.neighbors) {
    std::string change = neighbor.name + " " + neighbor.from + " -> " + neighbor.to;
    if (!neighbor.plan) {
      table.addRow({change, "-", "", neighbor.reason});
      continue;
    }
    const PlanCosts &costs = neighbor.plan->costs;
    double step = double(best.costs.time->step);
    table.addRow({change, formatChange(double(costs.time->step) - step, step), formatBytes(costs.peak),
                  describeChanges(best, *neighbor.plan)});
  }
  table.print(os);
}

void stage::print(llvm::raw_ostream &os, const SearchResult &result) {
  printHead(os, result);
  if (result.getObjectives().size() > 1)
    os << "no other plan is better in both '" << sema::getSearchRecords()[result.getObjectives()[0]].name << "' and '"
       << sema::getSearchRecords()[result.getObjectives()[1]].name << "'\n";
  printTimes(os, makeComparison(result, "-"));
  printExcluded(os, result);
  printNeighbors(os, result);
}

void stage::printCsv(llvm::raw_ostream &os, const SearchResult &result) {
  Comparison comparison = makeComparison(result, "");
  printCsv(os, comparison);
}

static void writeCosts(llvm::json::OStream &json, const FoundPlan &plan) {
  const PlanTime &time = *plan.costs.time;
  auto seconds = [](Ticks ticks) { return double(ticks) / double(ticksPerSecond); };
  json.attributeObject("time", [&] {
    json.attribute("step_seconds", seconds(time.step));
    if (time.range) {
      json.attribute("least_step_seconds", seconds(time.range->first));
      json.attribute("most_step_seconds", seconds(time.range->second));
    }
    json.attribute(time.areSamples ? "samples_per_second_per_device" : "tokens_per_second_per_device",
                   time.figures.tokensPerDevice);
    if (time.hasPeak)
      json.attribute("mfu", time.figures.mfu);
    json.attribute("bubble_fraction", time.figures.bubble);
    json.attribute("exposed_seconds", seconds(time.figures.exposed));
  });
  json.attribute("peak_bytes", int64_t(plan.costs.peak));
  json.attributeObject("accounts", [&] {
    for (const auto &[name, ticks] : plan.shares)
      json.attribute(name, seconds(ticks));
  });
}

void stage::printJson(llvm::raw_ostream &os, const SearchResult &result) {
  llvm::json::OStream json(os, 2);
  auto writeValues = [&](llvm::ArrayRef<std::string> values) {
    json.attributeObject("values", [&] {
      for (auto [name, value] : llvm::zip(result.names, values))
        if (!value.empty())
          writeGiven(json, name, value);
    });
  };
  json.object([&] {
    json.attribute("schema", 2);
    json.attribute("job", result.job);
    json.attributeArray("objectives", [&] {
      for (unsigned record : result.getObjectives())
        json.value(sema::getSearchRecords()[record].name);
    });
    json.attributeArray("following", [&] {
      for (const sema::BoundSearch &space : result.spaces)
        for (const sema::FollowingName &follows : space.following)
          json.object([&] {
            if (space.strategy.value)
              json.attribute("strategy", space.strategy.label);
            json.attribute("name", follows.name);
            json.attribute("formula", follows.formula);
          });
    });
    json.attribute("candidates", int64_t(result.numCandidates));
    json.attribute("compiled", int64_t(result.numCompiled));
    json.attribute("fitting", int64_t(result.numFit));
    json.attribute("too_large", int64_t(result.numTooLarge));
    json.attribute("too_slow", int64_t(result.numTooSlow));
    json.attribute("undecided", int64_t(result.numUndecided));
    json.attributeArray("excluded", [&] {
      for (const ExcludedBy &excluded : result.excluded)
        json.object([&] {
          json.attribute("rule", excluded.rule);
          json.attribute("count", int64_t(excluded.count));
        });
    });
    if (result.nearest)
      json.attributeObject("nearest", [&] {
        writeValues(result.nearest->values);
        json.attribute("needs_bytes", int64_t(result.nearest->needs));
        json.attribute("limit_bytes", int64_t(result.nearest->limit));
      });
    json.attributeArray("plans", [&] {
      for (const FoundPlan &plan : result.best)
        json.object([&] {
          writeValues(plan.values);
          writeCosts(json, plan);
        });
    });
    json.attributeArray("neighbors", [&] {
      for (const NeighborPlan &neighbor : result.neighbors)
        json.object([&] {
          json.attribute("name", neighbor.name);
          json.attribute("from", neighbor.from);
          json.attribute("to", neighbor.to);
          if (!neighbor.plan) {
            json.attribute("excluded_because", neighbor.reason);
            return;
          }
          writeCosts(json, *neighbor.plan);
        });
    });
  });
  os << '\n';
}
