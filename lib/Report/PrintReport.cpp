//===- PrintReport.cpp - the report as text -------------------------------===//
#include "ReportRecords.h"
#include "StageTraffic.h"
#include "stage/IR/text/Text.h"
#include "stage/Report/Report.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::string stage::describeMesh(const Mesh &mesh) {
  std::string text;
  for (const Axis &axis : mesh.getAxes())
    text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  for (const AxisGroup &group : mesh.getGroups()) {
    text += (&group == mesh.getGroups().begin() ? "; " : ", ") + group.name + " = ";
    for (size_t i = 0; i < group.axes.size(); ++i)
      text += (i ? " x " : "") + mesh[group.axes[i]].name;
  }
  return text;
}

Records stage::listGroup(const TrafficReport &traffic) {
  Records records = {{"operation", "operation", describeOperation(traffic).str()}};
  if (traffic.toPart)
    records.push_back({"to", "", traffic.toPart->graph->name});
  records.insert(
      records.end(),
      {{"axes", "", traffic.axisNames},
       {"", "axes", traffic.toPart ? "to " + traffic.toPart->graph->name : llvm::join(traffic.axisNames, ", ")},
       {"group", "group", traffic.groupSize},
       {"subject", "carries", getName(traffic.subject).str()},
       {"phase", "phase", traffic.phaseName.str()},
       {"type", "type", traffic.types}});
  return records;
}

/// The stage in which the busiest rank computes most in terms of an average one, by a thousandth, cut off.
static void addImbalance(Table &table, const Report &report) {
  __int128 worst = 0;
  const StageReport *where = nullptr;
  for (const StageReport &stage : report.stages) {
    if (!stage.expertFlops)
      continue;
    __int128 ranks = report.ranks / report.program->numStages;
    __int128 times = stage.mostExpertFlops * 1000 / stage.expertFlops * ranks +
                     stage.mostExpertFlops * 1000 % stage.expertFlops * ranks / stage.expertFlops;
    if (times > worst) {
      worst = times;
      where = &stage;
    }
  }
  // That choices which are dealt out evenly do come out even need not be said.
  bool hasList =
      llvm::any_of(report.program->graph->mesh.getSlotLoads(), [](const SlotLoad &load) { return !load.isEven(); });
  if (!where || (worst == 1000 && !hasList))
    return;
  std::string fraction = std::to_string(1000 + int64_t(worst % 1000)).substr(1);
  table.addRow({"imbalance", formatCount(worst / 1000) + "." + fraction +
                                 " times the FLOPs of an average rank for experts on the busiest" +
                                 (report.stages.size() > 1 ? ", of stage " + std::to_string(where->stage) : "")});
}

void stage::addTraces(Table &table, const TraceStatistics &traces) {
  table.addRow({"classes", formatCount(traces.classes)});
  table.addRow({"trace nodes",
                formatCount(traces.nodes) + (traces.steps > 1 ? ", of " + formatCount(traces.steps) + " steps" : "")});
  table.addRow({"trace files", formatCount(traces.files) + ", " + formatBytes(traces.bytes) + " (" +
                                   formatCount(traces.bytes) + " bytes)" + (traces.written ? "" : ", not written")});
}

static void printHead(llvm::raw_ostream &os, const Report &report) {
  const Graph &graph = *report.program->graph;
  os << graph.name << '\n';
  Table table({{"", Table::Left}, {"", Table::Left}}, 2);
  std::string mesh = describeMesh(graph.mesh);
  int64_t first = report.program->firstRank;
  std::string numbers = first ? ", numbered from " + std::to_string(first) : "";
  table.addRow({"ranks", formatCount(report.ranks) + (mesh.empty() ? "" : " (" + mesh + ")") + numbers});
  if (report.phases.empty())
    table.addRow({"microbatches", formatCount(report.program->microbatches) + " per step"});
  else
    table.addRow({"units", describeUnits(report)});
  table.addRow({"parameters", formatCount(report.parameters)});
  if (report.activeParameters != report.parameters)
    table.addRow({"active", formatCount(report.activeParameters) + " of them work on one token"});
  if (report.padding)
    table.addRow({"padding", formatCount(report.padding) + " more parameters, as 'pad' rounds dims up"});
  if (report.storagePadding)
    table.addRow({"storage", formatCount(report.storagePadding) +
                                 " elements of padding, as all parts of a parameter are equally large"});
  if (report.emptySlots)
    table.addRow({"slots", formatCount(report.slots) + " for tokens per step, " + formatCount(report.emptySlots) +
                               " of them empty"});
  if (report.droppedChoices)
    table.addRow({"dropped", formatCount(report.droppedChoices) + " choices of tokens per step, which find no slot"});
  addImbalance(table, report);
  if (report.buffers)
    table.addRow({"buffers", formatCount(report.buffers) + ", not trained"});
  if (report.caches)
    table.addRow({"caches", describeCaches(*report.caches)});
  if (report.traces)
    addTraces(table, *report.traces);
  table.print(os, /*titles=*/false);
}

Records stage::listRecords(const FlopReport &flops) {
  return {{"contraction", "contraction", flops.contraction},
          {"attention", "attention", flops.attention},
          {"model", "model (both)", flops.getModel()},
          {"other", "other", flops.other},
          {"recomputed", "recomputed", flops.recompute}};
}

static void printFlops(llvm::raw_ostream &os, const Report &report) {
  os << "\nFLOPs of a step, all ranks\n";
  Table table({{"", Table::Left}, {"", Table::Right}, {"", Table::Right}}, 2);
  auto add = [&](const std::string &name, __int128 number) {
    table.addRow({name, formatFlops(number), formatCount(number)});
  };
  for (const Record &record : listRecords(report.flops))
    add(record.title, std::get<__int128>(record.value));
  if (const FlopReport &duplicated = report.duplicatedFlops; duplicated.getTotal()) {
    add("duplicated", duplicated.getTotal());
    if (duplicated.getModel())
      add("  of it model", duplicated.getModel());
  }
  if (report.paddingFlops.getTotal())
    add("padding", report.paddingFlops.getTotal());
  table.print(os, /*titles=*/false);
}

/// `12,288`, or from the least to the most that ranks have, and what they say in traces if that is something else.
static std::string formatSpread(const TrafficReport &traffic) {
  return (traffic.least == traffic.bytes ? "" : formatCount(traffic.least) + " to ") + formatCount(traffic.bytes) +
         (traffic.agreed && traffic.agreed != traffic.bytes ? ", said " + formatCount(traffic.agreed) : "");
}

std::vector<TrafficRow> stage::collectTraffic(const Report &report) {
  std::vector<const TrafficReport *> kinds;
  for (const StageReport &stage : report.stages)
    for (const TrafficReport &traffic : stage.traffic)
      if (llvm::none_of(kinds, [&](const TrafficReport *other) { return isAlike(*other, traffic); }))
        kinds.push_back(&traffic);
  // Further stages have kinds that those before have not.
  llvm::stable_sort(kinds, [](const TrafficReport *a, const TrafficReport *b) { return a->phase < b->phase; });
  std::vector<TrafficRow> rows;
  for (const TrafficReport *kind : kinds)
    for (const StageReport &stage : report.stages)
      for (const TrafficReport &traffic : stage.traffic) {
        if (!isAlike(*kind, traffic))
          continue;
        TrafficRow *previous = rows.empty() ? nullptr : &rows.back();
        if (previous && isAlike(*previous->traffic, traffic) && previous->last + 1 == stage.stage &&
            previous->traffic->count == traffic.count && previous->traffic->bytes == traffic.bytes &&
            previous->traffic->least == traffic.least && previous->traffic->agreed == traffic.agreed)
          previous->last = stage.stage;
        else
          rows.push_back({&traffic, stage.stage, stage.stage});
      }
  return rows;
}

std::string stage::describeStages(unsigned first, unsigned last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

Records stage::listRecords(const TrafficRow &row) {
  const TrafficReport &traffic = *row.traffic;
  Records records = listGroup(traffic);
  records.insert(records.end(), {{"", "stage", describeStages(row.first, row.last)},
                                 {"count", "count", traffic.count},
                                 {"bytes", "bytes put in", traffic.bytes, formatBytes},
                                 {"", "exactly", Record::Digits{formatSpread(traffic)}}});
  if (traffic.least != traffic.bytes)
    records.push_back({"least_bytes", "", traffic.least});
  if (traffic.agreed)
    records.push_back({"agreed_bytes", "", traffic.agreed});
  records.push_back({"moved", "moved", traffic.getMoved(), formatBytes});
  records.push_back({"", "exactly", traffic.getMoved()});
  return records;
}

static void printTraffic(llvm::raw_ostream &os, const Report &report) {
  os << "\ncommunication of a rank in a step\n";
  std::vector<Records> rows;
  for (const TrafficRow &row : collectTraffic(report))
    rows.push_back(listRecords(row));
  if (rows.empty())
    os << "  none\n";
  else
    printTable(os, rows, 2);
}

Records stage::listRecords(const CopyReport &copy, const std::string &stages) {
  return {{"operation", "operation", getName(copy.kind).str()},
          {"", "stage", stages},
          {"count", "count", copy.count},
          {"bytes", "bytes", copy.bytes, formatBytes},
          {"", "exactly", copy.bytes}};
}

static CopyReport findCopies(const StageReport &stage, OpKind kind) {
  auto found = llvm::find_if(stage.copies, [&](const CopyReport &copy) { return copy.kind == kind; });
  return found == stage.copies.end() ? CopyReport() : *found;
}

/// Nothing if there are none. Neighbouring stages with the same numbers share a row.
static void printCopies(llvm::raw_ostream &os, const Report &report) {
  std::vector<Records> rows;
  for (OpKind kind : {OpKind::Offload, OpKind::Fetch, OpKind::Store, OpKind::Load})
    for (size_t i = 0, end; i < report.stages.size(); i = end) {
      CopyReport copy = findCopies(report.stages[i], kind);
      for (end = i + 1; end < report.stages.size(); ++end)
        if (CopyReport other = findCopies(report.stages[end], kind);
            other.count != copy.count || other.bytes != copy.bytes)
          break;
      if (copy.count)
        rows.push_back(listRecords(copy, describeStages(report.stages[i].stage, report.stages[end - 1].stage)));
    }
  if (!rows.empty())
    printTable(os << "\ncopies of a rank to and from its host in a step\n", rows, 2);
}

static void printStageCosts(llvm::raw_ostream &os, const Report &report) {
  std::vector<Records> rows;
  int64_t ranks = report.ranks / report.program->numStages;
  for (size_t i = 0, end; i < report.stages.size(); i = end) {
    const StageReport &stage = report.stages[i];
    for (end = i + 1; end < report.stages.size() && report.stages[end].parameters == stage.parameters &&
                      report.stages[end].buffers == stage.buffers && report.stages[end].flops == stage.flops;)
      ++end;
    rows.push_back({{"", "stage", describeStages(stage.stage, report.stages[end - 1].stage)},
                    {"", "parameters per rank", stage.parameters},
                    {"", report.buffers ? "buffers per rank" : "", stage.buffers},
                    {"", "FLOPs of a rank, mean", stage.flops / ranks, formatFlops}});
  }
  printTable(os << "\nstages\n", rows, 2);
}

void stage::print(llvm::raw_ostream &os, const Report &report) {
  printHead(os, report);
  printTime(os, report);
  printFlops(os, report);
  printPhases(os, report);
  printTraffic(os, report);
  printCopies(os, report);
  if (report.stages.size() > 1)
    printStageCosts(os, report);
  os << "\nmemory of a rank at the peak\n";
  printStages(os, report.memory, /*listsAll=*/false);
}
