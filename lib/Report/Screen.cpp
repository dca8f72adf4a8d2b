//===- Screen.cpp - a report that fits on a screen ------------------------===//
//
// Problem: 25 lines of 110 columns (Screen.h), for a job of one rank and for one of 16 stages and 9 axes.
//
//   llama3_8b: a training step of Llama on h100, runtime pytorch
//     ranks           64 (pp 2 x dp 4 x cp 1 x tp 8)
//     parameters      8.03 billion; a rank holds 502 million
//     memory          12.9 GiB at the peak of stage 0, fits into 80.0 GiB
//
// Algorithm: sections are lists of lines; a long line goes on in the next one, below its text, and ends in `...` where
// it would take more lines than it may. Rows of communication are added up over operations, phases and types, the one
// that puts most on the wire comes first, and so many are shown as there are lines left.
//
//===----------------------------------------------------------------------===//
#include "stage/Report/Screen.h"
#include "ReportRecords.h"
#include "ShortNumbers.h"
#include "WaitRows.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
constexpr size_t maxLines = 25, maxColumns = 110;
constexpr size_t labelWidth = 14;
/// A heading, the titles of columns, a row, and what is left out.
constexpr size_t linesOfTraffic = 4;

/// What a rank communicates of one subject over one group of axes.
struct Meaning {
  std::string subject, axes, phase;
  std::vector<std::string> operations;
  bool isSend = false;
  double count = 0, bytes = 0, wire = 0;
  Ticks taken = 0, exposed = 0;
};

class Screen {
public:
  Screen(llvm::raw_ostream &os, const Report &report) : os(os), report(report) {}

  void print() {
    addWhat();
    addTime();
    addMemory();
    addTraffic();
    lines.push_back("'--report=full' shows every stage, phase and tensor; '--report=json' has exact numbers");
    for (const std::string &line : lines)
      os << line << '\n';
  }

private:
  /// Parts that are joined by commas, on lines that are full.
  void add(const std::string &label, llvm::ArrayRef<std::string> parts, size_t most = 2) {
    std::string line = "  " + label + std::string(labelWidth - std::min(labelWidth, label.size()), ' ') + "  ";
    const size_t indent = line.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
      bool isFirst = line.size() == indent;
      if (!isFirst && line.size() + 1 + part.size() > maxColumns) {
        if (--most == 0) {
          line += " ...";
          break;
        }
        lines.push_back(std::move(line));
        line = std::string(indent, ' ');
        isFirst = true;
      }
      line += (isFirst ? "" : " ") + part;
    }
    lines.push_back(cut(line, maxColumns));
  }
  void add(const std::string &label, const std::string &text) { add(label, llvm::makeArrayRef(text)); }

  static std::string cut(const std::string &text, size_t most) {
    return text.size() <= most ? text : text.substr(0, most - 4) + " ...";
  }

  /// `all_gather, reduce_scatter, ...`
  static std::string join(llvm::ArrayRef<std::string> names, size_t most) {
    std::string text;
    for (const std::string &name : names) {
      if (text.size() + name.size() + 2 > most)
        return text + (text.empty() ? cut(name, most) : ", ...");
      text += (text.empty() ? "" : ", ") + name;
    }
    return text;
  }

  bool hasStages() const { return report.program->numStages > 1; }

  void addWhat() {
    const Graph &graph = *report.program->graph;
    std::string title = report.job.empty() || report.job == graph.name ? graph.name : report.job + ": " + graph.name;
    title += graph.training ? ", a training step" : ", inference";
    if (report.step)
      title += ", on " + report.step->time.machine + " with runtime " + report.step->time.runtime;
    lines.push_back(cut(title, maxColumns));
    std::string mesh = describeMesh(graph.mesh);
    auto [axes, groups] = llvm::StringRef(mesh).split("; ");
    std::vector<std::string> parts = {formatCount(report.ranks) + (axes.empty() ? "" : " (" + axes.str() + ")")};
    for (llvm::StringRef group : llvm::split(groups, ", "))
      if (!group.empty())
        parts.push_back(group.str());
    add("ranks", parts);
    if (report.phases.empty())
      add("microbatches", formatCount(report.program->microbatches) + " per step");
    else
      addPhases();
    __int128 most = 0;
    for (const StageReport &stage : report.stages)
      most = std::max(most, stage.parameters);
    std::vector<std::string> parameters = {shortenCount(double(report.parameters))};
    if (report.activeParameters != report.parameters)
      parameters.push_back(shortenCount(double(report.activeParameters)) + " of them work on one token");
    if (report.ranks > 1)
      parameters.push_back("a rank holds " + std::string(hasStages() ? "at most " : "") + shortenCount(double(most)));
    add("parameters", parameters);
    addFlops();
    if (report.traces)
      add("traces",
          {shortenCount(double(report.traces->files)) + " files", shortenBytes(double(report.traces->bytes)),
           shortenCount(double(report.traces->nodes)) + " nodes" + (report.traces->written ? "" : " (written by -o)")});
  }

  void addPhases() {
    for (const PhaseReport &phase : report.phases) {
      auto range = [](__int128 least, __int128 most, std::string (*shorten)(double)) {
        return formatRange(shorten(double(least)), shorten(double(most)));
      };
      add(describePhase(*report.program->graph, phase.kind).str(),
          {shortenCount(double(phase.units)) + (phase.units == 1 ? " unit of " : " units of ") +
               range(phase.leastFlops, phase.mostFlops, shortenFlops),
           range(phase.leastBytes, phase.mostBytes, shortenBytes) + " read and written"});
    }
    if (!report.caches)
      return;
    const CacheReport &caches = *report.caches;
    std::string text = shortenBytes(double(caches.bytes)) + " for ";
    if (caches.sequences)
      text += formatCount(caches.sequences) + (caches.sequences == 1 ? " sequence of " : " sequences of ");
    add("caches", text + formatCount(caches.positions) + " positions, on all ranks together");
  }

  void addFlops() {
    const FlopReport &flops = report.flops;
    std::vector<std::string> parts = {shortenFlops(double(flops.getModel()))};
    if (flops.attention && flops.contraction)
      parts.push_back(shortenFlops(double(flops.attention)) + " of it attention");
    for (auto [name, number] :
         {std::pair("recomputed", flops.recompute), std::pair("padding", report.paddingFlops.getTotal())})
      if (number)
        parts.push_back(name + (" " + shortenFlops(double(number))));
    add("model FLOPs", parts);
    if (__int128 duplicated = report.duplicatedFlops.getTotal())
      add("duplicated", shortenFlops(double(duplicated)) + " that ranks compute although others do, too");
    if (report.droppedChoices)
      add("dropped",
          shortenCount(double(report.droppedChoices)) + " choices of tokens, which find no slot of an expert");
  }

  void addTime() {
    lines.push_back("");
    if (!report.step) {
      add("time", "not known without a machine: -D machine=NAME, as 'stagec doc std.machines' lists them");
      return;
    }
    const StepReport &step = *report.step;
    const TimeReport &time = step.time;
    StepFigures figures = getFigures(report);
    std::vector<std::string> parts = {shortenTime(time.step)};
    if (step.range)
      parts[0] += " (" + shortenTime(step.range->first) + " to " + shortenTime(step.range->second) +
                  ", as nobody says what products reach)";
    if (step.accuracy.set)
      parts.push_back("+-" + formatError(*step.accuracy.set) + " % by " + formatCount(step.accuracy.set->rows) +
                      " measured steps");
    else if (!step.range)
      parts.push_back("with an unknown error");
    if (!step.accuracy.reasons.empty())
      parts.push_back("not covered by them: " + joinCodes(step.accuracy.reasons));
    add("time", parts);
    parts.clear();
    // A decode step reads positions that were there before it: tokens of the step would count these.
    if (llvm::none_of(report.phases, [](const PhaseReport &phase) { return phase.kind == PhaseKind::Decode; }))
      parts = {shortenCount(figures.tokensPerSecond) + (step.areSamples ? " samples/s" : " tokens/s"),
               shortenCount(figures.tokensPerDevice) + " per device"};
    if (step.petaFlop) {
      parts.push_back("MFU " + shortenShare(figures.mfu));
      if (report.flops.recompute)
        parts.push_back("HFU " + shortenShare(figures.hfu));
      parts.back() +=
          " of " + shortenFlops(1e15 / double(step.petaFlop) * double(ticksPerSecond)) + "/s (" + step.peakType + ")";
    }
    if (!parts.empty())
      add("speed", parts);
    add("a rank's time", listAccounts(time));
    parts.clear();
    if (figures.joules)
      parts.push_back(shortenJoules(*figures.joules));
    if (figures.dollars)
      parts.push_back(shortenDigits(*figures.dollars) + " USD");
    if (!parts.empty())
      add("a step costs", parts);
  }

  static std::string joinCodes(llvm::ArrayRef<DomainReason> reasons) {
    std::string text;
    for (const DomainReason &reason : reasons)
      text += (text.empty() ? "" : ", ") + reason.code.str();
    return text;
  }

  /// Means over stages, the largest first.
  static std::vector<std::string> listAccounts(const TimeReport &time) {
    std::vector<std::pair<double, std::string>> shares;
    for (unsigned i = 0; i < numTimeAccounts; ++i) {
      double sum = 0;
      for (const StageTime &stage : time.stages)
        sum += double(stage.accounts[i]);
      TimeAccount account = TimeAccount(i);
      std::string name = account == TimeAccount::Exposed ? "exposed communication" : getName(account).str();
      constexpr double leastShown = 0.005;
      if (double share = sum / double(time.stages.size()) / double(std::max<Ticks>(time.step, 1)); share > leastShown)
        shares.emplace_back(share, name + " " + shortenShare(share));
    }
    llvm::stable_sort(shares, [](const auto &a, const auto &b) { return a.first > b.first; });
    std::vector<std::string> texts;
    for (auto &[share, text] : shares)
      texts.push_back(text);
    return texts;
  }

  void addMemory() {
    lines.push_back("");
    const StageMemory &worst = report.getLargestStage();
    const StageMemory &least = *std::min_element(
        report.memory.stages.begin(), report.memory.stages.end(),
        [](const StageMemory &a, const StageMemory &b) { return a.peak.getTotal() < b.peak.getTotal(); });
    std::vector<std::string> parts = {shortenBytes(double(worst.peak.getTotal())) + " at the peak" +
                                      (hasStages() ? " of stage " + std::to_string(worst.stage) : " of a rank")};
    if (std::optional<bool> fits = fitsMemory(report))
      parts.push_back((*fits ? "fits into " : "does not fit into ") + shortenBytes(double(report.step->capacity)));
    if (const std::optional<AllocatorUse> &use = report.memory.allocator)
      parts.push_back("the allocator reserves " + shortenBytes(double(use->reserved)) +
                      (use->fits ? "" : ", which does not fit"));
    if (worst.inFlight > 1)
      parts.push_back(formatCount(worst.inFlight) + (worst.savedPerMicrobatch.size() > 1
                                                         ? " chunks of microbatches in flight"
                                                         : " microbatches in flight"));
    if (least.peak.getTotal() != worst.peak.getTotal())
      parts.push_back("least " + shortenBytes(double(least.peak.getTotal())) + " (stage " +
                      std::to_string(least.stage) + ")");
    add("memory", parts);
    std::vector<std::pair<ByteCount, std::string>> classes;
    for (unsigned i = 0; i < numMemoryClasses; ++i) {
      MemoryClass kind = MemoryClass(i);
      std::string name = kind == MemoryClass::ModelBuffers ? "buffers of the model"
                         : kind == MemoryClass::Buffers    ? "communication buffers"
                                                           : getName(kind).str();
      if (ByteCount bytes = worst.peak[kind])
        classes.emplace_back(bytes, name + " " + shortenBytes(double(bytes)));
    }
    llvm::stable_sort(classes, [](const auto &a, const auto &b) { return a.first > b.first; });
    parts.clear();
    for (auto &[bytes, text] : classes)
      parts.push_back(text);
    if (!parts.empty())
      add("  by class", parts);
    if (worst.host)
      add("  on the host", shortenBytes(double(worst.host->peak.getTotal())));
  }

  /// Of the stage whose ranks put most on the wire.
  void addTraffic() {
    if (lines.size() + linesOfTraffic + 2 > maxLines)
      llvm::erase_if(lines, [](const std::string &line) { return line.empty(); });
    lines.push_back("");
    auto sumMoved = [](const StageReport &stage) {
      __int128 moved = 0;
      for (const TrafficReport &traffic : stage.traffic)
        moved += traffic.getMoved();
      return moved;
    };
    const StageReport &most =
        *std::max_element(report.stages.begin(), report.stages.end(),
                          [&](const StageReport &a, const StageReport &b) { return sumMoved(a) < sumMoved(b); });
    std::vector<Meaning> rows = collect(most);
    if (rows.empty())
      return add("communication", "none");
    addWaits(rows, most.stage);
    lines.push_back("communication of a rank in a step" +
                    (hasStages() ? ", on stage " + std::to_string(most.stage) + ", which has most" : ""));
    size_t left = maxLines - std::min(maxLines - linesOfTraffic, lines.size()) - 2;
    size_t shown = rows.size() <= left ? rows.size() : left - 1;
    std::string text;
    llvm::raw_string_ostream table(text);
    printTable(table, listRows(llvm::makeArrayRef(rows).take_front(shown)), 2);
    llvm::SmallVector<llvm::StringRef, 16> split;
    llvm::StringRef(table.str()).rtrim().split(split, '\n');
    for (llvm::StringRef line : split)
      lines.push_back(line.str());
    if (shown == rows.size())
      return;
    double wire = 0;
    for (const Meaning &row : llvm::makeArrayRef(rows).drop_front(shown))
      wire += row.wire;
    lines.push_back("  and " + std::to_string(rows.size() - shown) + " kinds more, " + shortenBytes(wire) +
                    " on the wire");
  }

  std::vector<Meaning> collect(const StageReport &stage) const {
    std::vector<Meaning> rows;
    for (const TrafficReport &traffic : stage.traffic) {
      // Prefill and decode are limited by different things.
      std::string phase = report.phases.empty() ? "" : traffic.phaseName.str();
      std::string subject = getName(traffic.subject).str();
      std::string axes = traffic.toPart ? "to " + traffic.toPart->graph->name : llvm::join(traffic.axisNames, ", ");
      auto known = llvm::find_if(rows, [&](const Meaning &row) {
        return std::tie(row.subject, row.axes, row.phase, row.isSend) == std::tie(subject, axes, phase, traffic.isSend);
      });
      Meaning &row = known == rows.end() ? rows.emplace_back() : *known;
      row.subject = subject;
      row.axes = axes;
      row.phase = phase;
      row.isSend = traffic.isSend;
      if (std::string name = describeOperation(traffic).str(); !llvm::is_contained(row.operations, name))
        row.operations.push_back(name);
      row.count += double(traffic.count);
      row.bytes += double(traffic.bytes);
      row.wire += double(traffic.getMoved());
    }
    llvm::stable_sort(rows, [](const Meaning &a, const Meaning &b) { return a.wire > b.wire; });
    return rows;
  }

  /// Messages between stages are one row of times, which cannot be divided over what they carry.
  void addWaits(std::vector<Meaning> &rows, unsigned number) const {
    if (!report.step)
      return;
    Subjects subjects(*report.program->graph);
    for (const StageTime &stage : report.step->time.stages) {
      if (stage.program != report.program || stage.stage != number)
        continue;
      for (const WaitRow &wait : listWaits(stage, subjects))
        for (Meaning &row : rows)
          if (!row.isSend && row.subject == wait.subject && row.axes == llvm::join(wait.axes, ", ") &&
              (row.phase.empty() || row.phase == wait.phase)) {
            row.taken += wait.taken;
            row.exposed += wait.exposed;
          }
    }
  }

  std::vector<Records> listRows(llvm::ArrayRef<Meaning> rows) const {
    constexpr size_t widthOfAxes = 20, widthOfOperations = 30;
    auto digits = [](const std::string &text) { return Record::Digits{text}; };
    std::vector<Records> table;
    for (const Meaning &row : rows)
      table.push_back({{"", "carries", row.subject},
                       {"", "axes", cut(row.axes, widthOfAxes)},
                       {"", report.phases.empty() ? "" : "phase", row.phase},
                       {"", "operations", join(row.operations, widthOfOperations)},
                       {"", "count", digits(shortenCount(row.count))},
                       {"", "input", digits(shortenBytes(row.bytes))},
                       {"", "on the wire", digits(shortenBytes(row.wire))},
                       {"", report.step ? "time" : "", digits(row.taken ? shortenTime(row.taken) : "-")},
                       {"", report.step ? "exposed" : "", digits(row.exposed ? shortenTime(row.exposed) : "-")}});
    return table;
  }

  llvm::raw_ostream &os;
  const Report &report;
  std::vector<std::string> lines;
};
} // namespace

void stage::printScreen(llvm::raw_ostream &os, const Report &report) { Screen(os, report).print(); }

void stage::printScreen(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent) {
  for (const Report &pool : pools) {
    printScreen(os, pool);
    os << '\n';
  }
  os << "caches sent from " << sent.from << " to " << sent.to << ": " << shortenBytes(double(sent.bytes)) << " in "
     << shortenCount(double(sent.messages)) << " messages, "
     << shortenBytes(double(sent.sequenceBytes) / double(sent.sequences)) << " of a sequence, "
     << (sent.isAtEnd ? "at the end of a unit\n" : "by layer\n");
  if (sent.traces)
    os << "traces: " << shortenCount(double(sent.traces->files)) << " files, "
       << shortenBytes(double(sent.traces->bytes)) << '\n';
}
