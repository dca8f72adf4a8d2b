//===- StepReport.cpp - what a step takes on a machine, for people --------===//
#include "stage/Report/StepReport.h"
#include "ReportRecords.h"
#include "WaitRows.h"
#include "llvm/Support/Format.h"

using namespace stage;

StepFigures stage::getFigures(const Report &report) {
  const StepReport &step = *report.step;
  StepFigures figures;
  figures.seconds = double(step.time.step) / double(ticksPerSecond);
  if (!step.time.step)
    return figures;
  figures.tokensPerSecond = double(step.tokens) / figures.seconds;
  figures.tokensPerDevice = figures.tokensPerSecond / double(report.ranks);
  double deviceSeconds = figures.seconds * double(report.ranks), model = double(report.flops.getModel());
  figures.modelFlops = model / deviceSeconds;
  double deviceTicks = double(step.time.step) * double(report.ranks), ofPeak = double(step.petaFlop) / 1e15;
  figures.mfu = model * ofPeak / deviceTicks;
  figures.hfu = (model + double(report.flops.recompute)) * ofPeak / deviceTicks;
  __int128 bubble = 0, exposed = 0;
  for (const StageTime &stage : step.time.stages) {
    bubble += stage.get(TimeAccount::Bubble);
    exposed += stage.get(TimeAccount::Exposed);
  }
  __int128 numStages = __int128(step.time.stages.size());
  figures.bubble = double(bubble) / double(numStages) / double(step.time.step);
  figures.exposed = Ticks(exposed / numStages);
  if (step.powerBusy && step.powerIdle) {
    double busy = double(step.time.busy) / double(ticksPerSecond);
    figures.joules = busy * step.powerBusy->toDouble() + (deviceSeconds - busy) * step.powerIdle->toDouble();
  }
  if (step.price)
    figures.dollars = deviceSeconds * step.price->toDouble();
  return figures;
}

std::optional<bool> stage::fitsMemory(const Report &report) {
  if (!report.step || !report.step->capacity)
    return std::nullopt;
  return report.getLargestStage().peak.getTotal() <= report.step->capacity;
}

bool stage::isNearlyFull(const Report &report) {
  return fitsMemory(report).value_or(false) &&
         report.getLargestStage().peak.getTotal() * 20 > report.step->capacity * 19;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::string stage::formatDouble(double value, int digits) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, value);
  return text;
}

static std::string formatShare(double share) { return formatDouble(share * 100, 1) + " %"; }

std::string stage::formatSeconds(Ticks ticks) {
  std::string digits = toDecimal(__int128(ticksPerSecond) + ticks % ticksPerSecond);
  return toDecimal(ticks / ticksPerSecond) + "." + digits.substr(1);
}

static Record::Digits toSeconds(Ticks ticks) { return {formatSeconds(ticks)}; }

std::string stage::formatMillis(Ticks ticks) {
  constexpr Ticks ticksPerMicro = ticksPerSecond / 1'000'000;
  int64_t micros = ticks / ticksPerMicro + (ticks % ticksPerMicro * 2 >= ticksPerMicro);
  return formatCount(micros / 1000) + "." + toDecimal(1000 + micros % 1000).substr(1);
}

std::string stage::formatPerSecond(double number) {
  return number < 100 ? formatDouble(number, 2) : formatCount(__int128(number + 0.5));
}

static Record::Digits formatCell(Ticks ticks) { return {formatMillis(ticks)}; }

/// What a step costs over its millions of tokens, or samples.
static double perMillion(const StepReport &step, double ofStep) {
  return step.tokens ? ofStep * 1e6 / double(step.tokens) : 0;
}

/// Three significant digits or more: `36.61 kJ`, `0.0447 USD`.
static std::string formatAmount(double amount, llvm::StringRef unit) {
  static constexpr llvm::StringLiteral prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (bool isScaled = unit == "J"; isScaled && amount >= 1000 && prefix + 1 < std::size(prefixes); ++prefix)
    amount /= 1000;
  if (amount >= 10000)
    return formatCount(__int128(amount + 0.5)) + " " + unit.str();
  int digits = 2;
  for (double rest = amount; rest > 0 && rest < 1 && digits < 9; rest *= 10)
    ++digits;
  return formatDouble(amount, digits) + " " + prefixes[prefix].str() + unit.str();
}

/// `36.61 kJ, 69.83 kJ per million tokens`.
static std::string formatCost(const StepReport &step, double ofStep, llvm::StringRef unit) {
  return formatAmount(ofStep, unit) + ", " + formatAmount(perMillion(step, ofStep), unit) + " per million " +
         (step.areSamples ? "samples" : "tokens");
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static Records listAccounts(const StageTime &stage, bool hasOthers) {
  Records records = {{"stage", "stage", __int128(stage.stage)},
                     {"rank", hasOthers ? "rank" : "", __int128(stage.rank)}};
  for (unsigned i = 0; i < numTimeAccounts; ++i) {
    llvm::StringRef name = getName(TimeAccount(i));
    std::string key = name == "element-wise" ? "elementwise" : name.str();
    records.push_back({key + "_seconds", name.str(), formatCell(stage.accounts[i])});
  }
  return records;
}

/// What is alike on all stages: where a rank waits most for it.
static std::vector<WaitRow> findLongest(const std::vector<std::vector<WaitRow>> &stages) {
  std::vector<WaitRow> rows;
  for (const std::vector<WaitRow> &stage : stages)
    for (const WaitRow &own : stage) {
      auto known = llvm::find_if(rows, [&](const WaitRow &row) { return row.isAlike(own); });
      if (known == rows.end())
        rows.push_back(own);
      else if (std::tie(known->exposed, known->taken) < std::tie(own.exposed, own.taken))
        *known = own;
    }
  return rows;
}

static std::string describeTables(const TimeReport &time) {
  return time.insideTables ? "every op lies inside the tables of the machine"
                           : "not every op lies inside the tables of the machine";
}

static std::string describeRange(const StepReport &step) {
  if (!step.range)
    return "";
  return " (" + formatMillis(step.range->first) + " to " + formatMillis(step.range->second) +
         " ms: products of unknown efficiency, at " + formatDouble(mostContraction.toDouble(), 2) + " to " +
         formatDouble(leastContraction.toDouble(), 2) + " of the roof)";
}

/// From the least to the most that a step may take, by products of unknown efficiency and by the error of a set.
static std::optional<std::pair<Ticks, Ticks>> getRange(const StepReport &step) {
  const auto &products = step.range, &measured = step.accuracy.range;
  if (!products || !measured)
    return products ? products : measured;
  return std::pair(std::min(products->first, measured->first), std::max(products->second, measured->second));
}

static void printHead(llvm::raw_ostream &os, const Report &report) {
  const StepReport &step = *report.step;
  const TimeReport &time = step.time;
  StepFigures figures = getFigures(report);
  os << "\ntime of a step on " << time.machine << ", runtime " << time.runtime << '\n';
  Table table({{"", Table::Left}, {"", Table::Left}}, 2);
  table.addRow({"step", formatMillis(time.step) + " ms" + describeRange(step) +
                            (step.accuracy.set ? ", " + describeError(step.accuracy) : "")});
  if (!step.accuracy.set && !step.range)
    table.addRow({"error", "unknown: " + step.accuracy.unknown});
  table.addRow(
      {step.areSamples ? "samples/s" : "tokens/s",
       formatPerSecond(figures.tokensPerSecond) + ", " + formatPerSecond(figures.tokensPerDevice) + " per device"});
  table.addRow({"model FLOP/s", formatFlops(__int128(figures.modelFlops)) + "/s per device"});
  if (step.petaFlop)
    table.addRow({"MFU", formatShare(figures.mfu) + " of " +
                             formatFlops(__int128(1e15 / double(step.petaFlop) * double(ticksPerSecond) + 0.5)) +
                             "/s (" + step.peakType + ")" +
                             (report.flops.recompute ? ", HFU " + formatShare(figures.hfu) : "")});
  table.addRow({"bubble", formatShare(figures.bubble)});
  table.addRow({"exposed", formatMillis(figures.exposed) + " ms of communication, mean of the stages"});
  table.addRow({"tables", describeTables(time)});
  if (std::optional<bool> fits = fitsMemory(report))
    table.addRow(
        {"memory", (*fits ? "fits into " : "does not fit into ") + formatBytes(step.capacity) +
                       (step.reserved ? ", beside " + formatBytes(step.reserved) + " that the runtime reserves" : "")});
  for (const DomainReason &reason : step.accuracy.reasons)
    table.addRow({&reason == &step.accuracy.reasons.front() ? "not covered" : "", reason.text});
  if (figures.joules)
    table.addRow({"energy", formatCost(step, *figures.joules, "J")});
  if (figures.dollars)
    table.addRow({"cost", formatCost(step, *figures.dollars, "USD")});
  table.print(os, /*titles=*/false);
}

/// A change of a step, in milliseconds: `-13.124`.
static std::string formatChange(Ticks ticks) { return (ticks < 0 ? "-" : "+") + formatMillis(std::abs(ticks)); }

static std::string describeChange(const Sensitivity &row) { return row.times.num > row.times.den ? "+1 %" : "-10 %"; }

/// What helps most comes first, rates apart from others.
static void printSensitivities(llvm::raw_ostream &os, const StepReport &step) {
  if (!step.sensitivities)
    return;
  os << "\nwhat one change does to the step, in ms\n";
  if (step.sensitivities->areTooMany) {
    os << "  left out, as " << formatCount(step.time.numPlaced)
       << " units and tasks would be placed for each; -D machine.memory.rate=..., for example, tries one\n";
    return;
  }
  std::vector<Sensitivity> list = step.sensitivities->list;
  auto getRank = [](const Sensitivity &row) { return std::pair(row.times.num < row.times.den, row.step); };
  llvm::stable_sort(list, [&](const Sensitivity &a, const Sensitivity &b) { return getRank(a) < getRank(b); });
  std::vector<Records> rows;
  for (const Sensitivity &row : list) {
    Ticks change = row.step - step.time.step;
    double share = double(change) / double(std::max<Ticks>(step.time.step, 1));
    rows.push_back({{"", "entry", row.entry},
                    {"", "change", Record::Digits{describeChange(row)}},
                    {"", "ms", Record::Digits{formatChange(change)}},
                    {"", "% of step", Record::Digits{(change < 0 ? "" : "+") + formatDouble(share * 100, 3)}}});
  }
  if (rows.empty())
    os << "  none changes it\n";
  else
    printTable(os, rows, 2);
}

constexpr size_t maxLinks = 10;

void stage::printTime(llvm::raw_ostream &os, const Report &report) {
  if (!report.step)
    return;
  const TimeReport &time = report.step->time;
  printHead(os, report);
  os << "\nwhere the time of a rank goes, in ms\n";
  std::vector<Records> rows;
  for (const StageTime &stage : time.stages)
    rows.push_back(listAccounts(stage, /*hasOthers=*/false));
  printTable(os, rows, 2);
  rows.clear();
  for (const WaitRow &row : findLongest(listWaits(time)))
    rows.push_back(row.list(formatCell));
  if (!rows.empty()) {
    os << "\ncommunication of a rank in the stage that waits most for it, in ms\n";
    printTable(os, rows, 2);
  }
  os << "\ncritical path: what takes most of it\n";
  rows.clear();
  for (const PathLink &link : llvm::ArrayRef(time.path).take_front(maxLinks))
    rows.push_back({{"", "task", link.name},
                    {"", "stage", __int128(link.stage)},
                    {"", "times", __int128(link.count)},
                    {"", "ms", formatCell(link.ticks)},
                    {"", "% of step", Record::Digits{formatPercent(link.ticks, std::max<Ticks>(time.step, 1))}}});
  printTable(os, rows, 2);
  printSensitivities(os, *report.step);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

void stage::writeTime(llvm::json::OStream &json, const Report &report) {
  if (!report.step)
    return;
  const StepReport &step = *report.step;
  const TimeReport &time = step.time;
  StepFigures figures = getFigures(report);
  auto digits = [](double value, int places) { return Record::Digits{formatDouble(value, places)}; };
  json.attributeObject("time", [&] {
    json.attribute("machine", time.machine);
    json.attribute("runtime", time.runtime);
    json.attribute("inside_tables", time.insideTables);
    Records head = {{"step_seconds", "", toSeconds(time.step)}};
    if (std::optional<std::pair<Ticks, Ticks>> range = getRange(step))
      head.insert(head.end(), {{"least_step_seconds", "", toSeconds(range->first)},
                               {"most_step_seconds", "", toSeconds(range->second)}});
    std::string what = step.areSamples ? "samples" : "tokens";
    head.insert(head.end(), {{what, "", step.tokens},
                             {what + "_per_second", "", digits(figures.tokensPerSecond, 3)},
                             {what + "_per_second_per_device", "", digits(figures.tokensPerDevice, 3)},
                             {"model_flops_per_second_per_device", "", digits(figures.modelFlops, 0)}});
    if (step.petaFlop)
      head.insert(head.end(), {{"mfu", "", digits(figures.mfu, 6)}, {"hfu", "", digits(figures.hfu, 6)}});
    head.insert(head.end(), {{"bubble_fraction", "", digits(figures.bubble, 6)},
                             {"exposed_seconds", "", toSeconds(figures.exposed)}});
    for (auto [name, amount] : {std::pair("energy_joules", figures.joules), std::pair("cost_usd", figures.dollars)})
      if (amount)
        head.insert(head.end(),
                    {{name, "", digits(*amount, 6)},
                     {std::string(name) + "_per_million_" + what, "", digits(perMillion(step, *amount), 6)}});
    writeMembers(json, head);
    writeAccuracy(json, step.accuracy);
    std::vector<std::vector<WaitRow>> waits = listWaits(time);
    json.attributeArray("stages", [&] {
      for (size_t i = 0; i < time.stages.size(); ++i)
        json.object([&] {
          const StageTime &stage = time.stages[i];
          Records records = listAccounts(stage, true);
          for (unsigned i = 0; i < numTimeAccounts; ++i)
            records[records.size() - numTimeAccounts + i].value = toSeconds(stage.accounts[i]);
          writeMembers(json, records);
          std::vector<Records> communication;
          for (const WaitRow &row : waits[i])
            communication.push_back(row.list(toSeconds));
          writeRows(json, "communication", communication);
        });
    });
    std::vector<Records> path;
    for (const PathLink &link : time.path)
      path.push_back({{"task", "", link.name},
                      {"stage", "", __int128(link.stage)},
                      {"count", "", __int128(link.count)},
                      {"seconds", "", toSeconds(link.ticks)}});
    writeRows(json, "path", path);
    if (step.sensitivities && !step.sensitivities->areTooMany) {
      std::vector<Records> rows;
      for (const Sensitivity &row : step.sensitivities->list)
        rows.push_back({{"entry", "", row.entry},
                        {"times", "", digits(row.times.toDouble(), 2)},
                        {"step_seconds", "", toSeconds(row.step)}});
      writeRows(json, "sensitivities", rows);
    }
  });
  if (std::optional<bool> fits = fitsMemory(report))
    json.attributeObject("memory", [&] {
      writeMembers(
          json, {{"peak_bytes", "", report.getLargestStage().peak.getTotal()}, {"capacity_bytes", "", step.capacity}});
      if (step.reserved)
        writeMembers(json, {{"reserved_bytes", "", step.reserved}});
      json.attribute("fits", *fits);
    });
}
