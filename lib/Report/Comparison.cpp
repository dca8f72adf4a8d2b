//===- Comparison.cpp - what several plans cost, in one table -------------===//
#include "stage/Report/Comparison.h"
#include "ReportRecords.h"
#include "stage/Support/Records.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

static std::optional<PlanTime> summarizeTime(const Report &report) {
  if (!report.step)
    return std::nullopt;
  const StepReport &step = *report.step;
  PlanTime time{step.time.machine, step.time.runtime, step.time.insideTables, step.time.step, getFigures(report)};
  time.set = step.accuracy.set;
  time.range = step.accuracy.range;
  for (const DomainReason &reason : step.accuracy.reasons)
    time.notCovered += (time.notCovered.empty() ? "" : " ") + reason.code.str();
  time.areSamples = step.areSamples;
  time.hasPeak = step.petaFlop > 0;
  time.fits = fitsMemory(report);
  time.isNearlyFull = isNearlyFull(report);
  return time;
}

static PlanParts summarizeParts(const Report &report) {
  PlanParts parts;
  parts.peak = report.getLargestStage().peak;
  for (unsigned account = 0; report.step && account < numTimeAccounts; ++account) {
    __int128 sum = 0;
    for (const StageTime &stage : report.step->time.stages)
      sum += stage.accounts[account];
    parts.accounts[account] = Ticks(sum / int64_t(report.step->time.stages.size()));
  }
  __int128 most = -1;
  for (const StageReport &stage : report.stages) {
    std::vector<PlanParts::Moved> moved;
    __int128 sum = 0;
    for (const TrafficReport &traffic : stage.traffic) {
      std::string axes = llvm::join(traffic.axisNames, "+");
      auto known = llvm::find_if(
          moved, [&](const PlanParts::Moved &entry) { return entry.axes == axes && entry.subject == traffic.subject; });
      if (known == moved.end())
        known = moved.insert(moved.end(), {axes, traffic.subject, 0});
      known->bytes += traffic.getMoved();
      sum += traffic.getMoved();
    }
    if (sum > std::exchange(most, std::max(most, sum)))
      parts.moved = std::move(moved);
  }
  return parts;
}

PlanCosts stage::summarize(const Report &report) {
  PlanCosts costs;
  costs.ranks = report.ranks;
  costs.microbatches = report.program->microbatches;
  costs.parameters = report.parameters;
  costs.padding = report.padding;
  costs.flops = report.flops;
  costs.duplicatedFlops = report.duplicatedFlops;
  costs.peak = report.getLargestStage().peak.getTotal();
  costs.time = summarizeTime(report);
  costs.parts = summarizeParts(report);
  // Dense layers and experts may call the same axes by other names.
  using Group = std::pair<AxisList, std::vector<std::string>>;
  std::vector<std::pair<Group, __int128>> most;
  for (const StageReport &stage : report.stages) {
    costs.rankFlops = std::max(costs.rankFlops, stage.flops / (report.ranks / report.program->numStages));
    std::map<Group, __int128> sums;
    for (const TrafficReport &traffic : stage.traffic)
      sums[{toList(toSet(traffic.axes)), traffic.axisNames}] += traffic.bytes;
    for (auto &[group, bytes] : sums) {
      auto known = llvm::find_if(most, [&group = group](const auto &entry) { return entry.first == group; });
      if (known == most.end())
        most.emplace_back(group, bytes);
      else
        known->second = std::max(known->second, bytes);
    }
  }
  llvm::sort(most, [](const auto &a, const auto &b) {
    const AxisList &left = a.first.first, &right = b.first.first;
    return left.size() != right.size() ? left.size() < right.size() : a.first < b.first;
  });
  for (auto &[group, bytes] : most)
    costs.traffic.emplace_back(llvm::join(group.second, "+"), bytes);
  return costs;
}

/// The groups of axes of all plans, in the order in which they come up.
static std::vector<std::string> collectGroups(const Comparison &comparison) {
  std::vector<std::string> groups;
  for (const ComparedPlan &plan : comparison.plans)
    if (plan.costs)
      for (auto &[name, bytes] : plan.costs->traffic)
        if (!llvm::is_contained(groups, name))
          groups.push_back(name);
  // Single axes first, whichever plan had them.
  llvm::stable_sort(groups, [](llvm::StringRef a, llvm::StringRef b) { return a.count('+') < b.count('+'); });
  return groups;
}

static __int128 getTraffic(const PlanCosts &costs, llvm::StringRef group) {
  for (auto &[name, bytes] : costs.traffic)
    if (name == group)
      return bytes;
  return 0;
}

static Records listNames(const Comparison &comparison, const ComparedPlan &plan) {
  Records records = {{"job", "job", plan.job}};
  for (auto [name, value] : llvm::zip(comparison.names, plan.values))
    records.push_back({name, name, value});
  return records;
}

namespace {
/// What the times of several plans have in common.
struct CommonTimes {
  explicit CommonTimes(const Comparison &comparison) {
    for (const ComparedPlan &plan : comparison.plans) {
      if (!plan.costs || !plan.costs->time)
        continue;
      const PlanTime &time = *plan.costs->time;
      first = first ? first : &time;
      areOfOne &= time.machine == first->machine && time.runtime == first->runtime;
      (time.areSamples ? haveSamples : haveTokens) = true;
      haveErrors |= time.set.has_value();
      areCovered &= time.notCovered.empty();
      const PlanTime *&known = best[time.areSamples];
      if (canBeBest(time) && (!known || known->figures.tokensPerDevice < time.figures.tokensPerDevice))
        known = &time;
    }
  }
  /// `best`, `alike`, `slower`; empty: its error is not known, or it does not fit.
  llvm::StringRef compareWithBest(const PlanTime &time) const {
    if (!canBeBest(time))
      return "";
    const PlanTime &other = *best[time.areSamples];
    // What a device takes for a token, where all goes well for this plan and badly for the best one.
    auto perToken = [](const PlanTime &of, Ticks ticks) {
      return double(ticks) / double(of.step) / of.figures.tokensPerDevice;
    };
    return &time == &other                                                             ? "best"
           : perToken(time, time.range->first) <= perToken(other, other.range->second) ? "alike"
                                                                                       : "slower";
  }
  const PlanTime *first = nullptr; ///< Null: no plan has a machine.
  bool areOfOne = true;            ///< Machine and runtime.
  bool haveTokens = false, haveSamples = false;
  bool haveErrors = false; ///< The error of some plan is known.
  bool areCovered = true;  ///< By measured rows, as far as their errors are known.

private:
  static bool canBeBest(const PlanTime &time) {
    return time.range && time.fits.value_or(true) && time.figures.tokensPerDevice > 0;
  }
  const PlanTime *best[2] = {}; ///< Of those with tokens, and of those with samples.
};
} // namespace

static std::string describeFits(const PlanTime &time) {
  return !time.fits ? "" : !*time.fits ? "no" : time.isNearlyFull ? "nearly full" : "yes";
}

/// In a table. The plan has a time.
static Records listTime(const Comparison &comparison, const ComparedPlan &plan, const CommonTimes &common) {
  Records records = listNames(comparison, plan);
  const PlanTime &time = *plan.costs->time;
  const StepFigures &figures = time.figures;
  auto add = [&](llvm::StringRef title, std::string text) {
    records.push_back({"", title.str(), Record::Digits{std::move(text)}});
  };
  add("step ms", formatMillis(time.step));
  if (common.haveErrors) {
    add("+- %", time.set ? formatError(*time.set) : "");
    records.push_back({"", "against best", common.compareWithBest(time).str()});
  }
  for (auto [isThere, areSamples] : {std::pair(common.haveTokens, false), std::pair(common.haveSamples, true)})
    if (isThere)
      add(areSamples ? "samples/s/device" : "tokens/s/device",
          time.areSamples == areSamples ? formatPerSecond(figures.tokensPerDevice) : "");
  add("MFU %", time.hasPeak ? formatDouble(figures.mfu * 100, 1) : "");
  add("bubble %", formatDouble(figures.bubble * 100, 1));
  add("exposed ms", formatMillis(figures.exposed));
  records.push_back({"", "peak memory", plan.costs->peak, formatBytes});
  records.insert(records.end(), {{"", "fits", describeFits(time)},
                                 {"", "in tables", time.insideTables ? "all ops" : "not all"},
                                 {"", common.areCovered ? "" : "not covered", time.notCovered},
                                 {"", common.areOfOne ? "" : "machine, runtime", time.machine + ", " + time.runtime}});
  return records;
}

/// In CSV, where the names are those of JSON.
static Records listExactTime(const PlanTime *time, const CommonTimes &common) {
  Records records;
  auto add = [&](llvm::StringRef key, std::string text) {
    records.push_back({key.str(), "", Record::Digits{time ? std::move(text) : ""}});
  };
  const PlanTime &own = time ? *time : *common.first;
  const StepFigures &figures = own.figures;
  auto describe = [](bool value) { return value ? "true" : "false"; };
  add("machine", own.machine);
  add("runtime", own.runtime);
  add("inside_tables", describe(own.insideTables));
  add("step_seconds", formatSeconds(own.step));
  add("least_step_seconds", own.range ? formatSeconds(own.range->first) : "");
  add("most_step_seconds", own.range ? formatSeconds(own.range->second) : "");
  add("error_p90", own.set ? formatDouble(own.set->p90.toDouble() / 100, 6) : "");
  add("against_best", common.compareWithBest(own).str());
  add("not_covered", own.notCovered);
  for (auto [isThere, areSamples] : {std::pair(common.haveTokens, false), std::pair(common.haveSamples, true)})
    if (isThere)
      add(areSamples ? "samples_per_second_per_device" : "tokens_per_second_per_device",
          own.areSamples == areSamples ? formatDouble(figures.tokensPerDevice, 3) : "");
  add("mfu", own.hasPeak ? formatDouble(figures.mfu, 6) : "");
  add("bubble_fraction", formatDouble(figures.bubble, 6));
  add("exposed_seconds", formatSeconds(figures.exposed));
  add("fits", own.fits ? describe(*own.fits) : "");
  return records;
}

/// What stands of a plan in its row. A refused one has its job and values only.
static Records listPlan(const Comparison &comparison, const ComparedPlan &plan, llvm::ArrayRef<std::string> groups,
                        const CommonTimes &common) {
  Records records = listNames(comparison, plan);
  const PlanCosts costs = plan.costs.value_or(PlanCosts());
  records.insert(records.end(), {{"ranks", "ranks", costs.ranks},
                                 {"microbatches", "", costs.microbatches},
                                 {"parameters", "parameters", costs.parameters},
                                 {"padding", "", costs.padding}});
  for (const Record &flops : listRecords(costs.flops))
    records.push_back({flops.key + "_flops", flops.key == "model" ? "model FLOPs" : "", flops.value, formatFlops});
  records.insert(records.end(), {{"duplicated_flops", "duplicated", costs.duplicatedFlops.getTotal(), formatFlops},
                                 {"duplicated_model_flops", "", costs.duplicatedFlops.getModel()},
                                 {"rank_flops", "FLOPs of a rank", costs.rankFlops, formatFlops}});
  for (const std::string &group : groups)
    records.push_back({"bytes_" + group, "bytes " + group, getTraffic(costs, group), formatBytes});
  records.push_back({"peak_bytes", "peak memory", costs.peak, formatBytes});
  if (common.first)
    llvm::append_range(records, listExactTime(plan.costs && plan.costs->time ? &*plan.costs->time : nullptr, common));
  records.push_back({"refused_because", "", plan.refusal});
  return records;
}

/// So much of a reason stands in a line.
constexpr size_t maxReason = 110;

void stage::printTimes(llvm::raw_ostream &os, const Comparison &comparison) {
  CommonTimes common(comparison);
  std::vector<Records> rows;
  for (const ComparedPlan &plan : comparison.plans)
    if (plan.costs && plan.costs->time)
      rows.push_back(listTime(comparison, plan, common));
  if (rows.empty())
    return;
  os << "\ntime of a step";
  if (common.areOfOne)
    os << " on " << common.first->machine << ", runtime " << common.first->runtime;
  os << '\n';
  printTable(os, rows, 2, Table::Right);
  if (llvm::any_of(comparison.plans, [&](const ComparedPlan &plan) {
        return plan.costs && plan.costs->time && common.compareWithBest(*plan.costs->time) == "alike";
      }))
    os << "alike: by the errors of both it may be as fast as the best plan, so that measuring decides\n";
}

void stage::print(llvm::raw_ostream &os, const Comparison &comparison) {
  std::vector<std::string> groups = collectGroups(comparison);
  CommonTimes common(comparison);
  size_t refused = llvm::count_if(comparison.plans, [](const ComparedPlan &plan) { return !plan.costs; });
  os << formatCount(comparison.plans.size()) << (comparison.plans.size() == 1 ? " plan" : " plans");
  if (refused)
    os << ", " << formatCount(refused) << " refused";
  os << "; bytes that a rank puts in, and memory, are those of the stage with most\n";

  Table table = makeTable(listPlan(comparison, comparison.plans.front(), groups, common), 2, Table::Right);
  for (const ComparedPlan &plan : comparison.plans) {
    std::vector<std::string> row = formatCells(listPlan(comparison, plan, groups, common));
    if (plan.costs) {
      table.addRow(std::move(row));
    } else {
      row.resize(1 + comparison.names.size());
      bool isLong = plan.refusal.size() > maxReason;
      row.push_back("refused: " + (isLong ? plan.refusal.substr(0, maxReason) + "..." : plan.refusal));
      table.addText(std::move(row));
    }
  }
  table.print(os);
  printTimes(os, comparison);
}

static void printCsvRow(llvm::raw_ostream &os, llvm::ArrayRef<std::string> cells) {
  bool isFirst = true;
  for (llvm::StringRef cell : cells) {
    os << (isFirst ? "" : ",");
    isFirst = false;
    if (cell.find_first_of(",\"\r\n") == llvm::StringRef::npos) {
      os << cell;
      continue;
    }
    os << '"';
    for (char c : cell)
      os << (c == '"' ? "\"" : "") << c;
    os << '"';
  }
  os << '\n';
}

void stage::printCsv(llvm::raw_ostream &os, const Comparison &comparison) {
  std::vector<std::string> groups = collectGroups(comparison);
  CommonTimes common(comparison);
  printCsvRow(os, listKeys(listPlan(comparison, comparison.plans.front(), groups, common)));
  for (const ComparedPlan &plan : comparison.plans) {
    std::vector<std::string> row = listValues(listPlan(comparison, plan, groups, common));
    if (!plan.costs)
      std::fill(row.begin() + 1 + comparison.names.size(), row.end() - 1, "");
    printCsvRow(os, row);
  }
}
