//===- Comparison.cpp - what several plans cost, in one table -------------===//
#include "stage/Report/Comparison.h"
#include "stage/IR/text/Text.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

PlanCosts stage::summarize(const Report &report) {
  PlanCosts costs;
  costs.ranks = report.ranks;
  costs.microbatches = report.program->microbatches;
  costs.parameters = report.parameters;
  costs.padding = report.padding;
  costs.flops = report.flops;
  costs.duplicatedFlops = report.duplicatedFlops;
  costs.peak = report.getLargestStage().peak.getTotal();
  const Mesh &mesh = report.program->graph->mesh;
  std::vector<std::pair<AxisSet, __int128>> most;
  for (const StageReport &stage : report.stages) {
    costs.rankFlops = std::max(costs.rankFlops, stage.flops / (report.ranks / report.program->numStages));
    llvm::MapVector<AxisSet, __int128> sums;
    for (const TrafficReport &traffic : stage.traffic)
      sums[toSet(traffic.axes)] += traffic.bytes;
    for (auto &[axes, bytes] : sums) {
      auto known = llvm::find_if(most, [axes = axes](const auto &entry) { return entry.first == axes; });
      if (known == most.end())
        most.emplace_back(axes, bytes);
      else
        known->second = std::max(known->second, bytes);
    }
  }
  llvm::sort(most, [](const auto &a, const auto &b) {
    AxisList left = toList(a.first), right = toList(b.first);
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  for (auto &[axes, bytes] : most) {
    costs.traffic.emplace_back(llvm::join(listAxisNames(mesh, toList(axes)), "+"), bytes);
  }
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

/// So much of a reason stands in a line.
constexpr size_t maxReason = 110;

void stage::print(llvm::raw_ostream &os, const Comparison &comparison) {
  std::vector<std::string> groups = collectGroups(comparison);
  size_t refused = llvm::count_if(comparison.plans, [](const ComparedPlan &plan) { return !plan.costs; });
  os << formatCount(comparison.plans.size()) << (comparison.plans.size() == 1 ? " plan" : " plans");
  if (refused)
    os << ", " << formatCount(refused) << " refused";
  os << "; bytes that a rank puts in, and memory, are those of the stage with most\n";

  std::vector<std::pair<std::string, Table::Alignment>> columns = {{"job", Table::Left}};
  for (const std::string &name : comparison.names)
    columns.push_back({name, Table::Right});
  for (const char *title : {"ranks", "parameters", "model FLOPs", "duplicated", "FLOPs of a rank"})
    columns.push_back({title, Table::Right});
  for (const std::string &group : groups)
    columns.push_back({"bytes " + group, Table::Right});
  columns.push_back({"peak memory", Table::Right});
  Table table(std::move(columns), 2);
  for (const ComparedPlan &plan : comparison.plans) {
    std::vector<std::string> row = {plan.job};
    row.insert(row.end(), plan.values.begin(), plan.values.end());
    if (plan.costs) {
      const PlanCosts &costs = *plan.costs;
      row.insert(row.end(),
                 {formatCount(costs.ranks), formatCount(costs.parameters), formatFlops(costs.flops.getModel()),
                  formatFlops(costs.duplicatedFlops.getTotal()), formatFlops(costs.rankFlops)});
      for (const std::string &group : groups)
        row.push_back(formatBytes(getTraffic(costs, group)));
      row.push_back(formatBytes(costs.peak));
      table.addRow(std::move(row));
    } else {
      bool isLong = plan.refusal.size() > maxReason;
      row.push_back("refused: " + (isLong ? plan.refusal.substr(0, maxReason) + "..." : plan.refusal));
      table.addText(std::move(row));
    }
  }
  table.print(os);
}

static std::string formatExact(__int128 number) { return Rational{number, 1}.str(); }

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
  std::vector<std::string> titles = {"job"};
  titles.insert(titles.end(), comparison.names.begin(), comparison.names.end());
  titles.insert(titles.end(), {"ranks", "microbatches", "parameters", "padding", "contraction_flops", "attention_flops",
                               "model_flops", "other_flops", "recomputed_flops", "duplicated_flops",
                               "duplicated_model_flops", "rank_flops"});
  for (const std::string &group : groups)
    titles.push_back("bytes_" + group);
  titles.insert(titles.end(), {"peak_bytes", "refused_because"});
  printCsvRow(os, titles);
  for (const ComparedPlan &plan : comparison.plans) {
    std::vector<std::string> row = {plan.job};
    row.insert(row.end(), plan.values.begin(), plan.values.end());
    if (plan.costs) {
      const PlanCosts &costs = *plan.costs;
      for (__int128 number :
           {__int128(costs.ranks), __int128(costs.microbatches), costs.parameters, costs.padding,
            costs.flops.contraction, costs.flops.attention, costs.flops.getModel(), costs.flops.other,
            costs.flops.recompute, costs.duplicatedFlops.getTotal(), costs.duplicatedFlops.getModel(), costs.rankFlops})
        row.push_back(formatExact(number));
      for (const std::string &group : groups)
        row.push_back(formatExact(getTraffic(costs, group)));
      row.push_back(formatExact(costs.peak));
    }
    row.resize(titles.size() - 1);
    row.push_back(plan.refusal);
    printCsvRow(os, row);
  }
}
