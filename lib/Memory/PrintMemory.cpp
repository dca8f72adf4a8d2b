//===- PrintMemory.cpp - the memory report as text ------------------------===//
#include "Table.h"
#include "stage/Memory/Memory.h"

using namespace stage;

/// Lines of the list of what is live at a peak.
static constexpr size_t numLargest = 8;

std::string StageMemory::describeMoment() const {
  if (!op)
    return unit;
  std::string text = unit + ": " + (op->getNumResults() ? describe(*op->getResult()) : getName(op->kind).str());
  if (iteration)
    text += ", iteration " + std::to_string(*iteration);
  return text;
}

static void printSaved(llvm::raw_ostream &os, const SavedBytes &saved, const SizeBinding &binding) {
  if (saved.loop)
    os << "bytes kept for backward by one iteration of '" << saved.loop->name << "'"
       << (saved.caseNumber ? ", case " + std::to_string(*saved.caseNumber) : "") << ": ";
  else
    os << "bytes kept for backward outside of repeats: ";
  os << saved.bytes;
  if (SizeValue here = evaluateCount(saved.bytes, binding)) {
    os << " = " << formatCount(here.value.num);
    if (here.value.num >= 1024)
      os << " (" << formatBytes(here.value.num) << ")";
  }
  os << '\n';
  Table table({{"bytes", Table::Left}, {"value", Table::Left}}, 2);
  for (const SavedValue &value : saved.values)
    table.addRow({value.bytes.str(), describe(*value.value)});
  if (!table.empty())
    table.print(os);
  os << '\n';
}

/// Neighbouring stages that show the same row are shown once: `1-6`.
static bool looksLike(const StageMemory &a, const StageMemory &b) {
  auto key = [](const LiveValue &live) { return std::tuple(live.value, live.kind, live.copies, live.bytes); };
  return a.peak.bytes == b.peak.bytes && a.inFlight == b.inFlight && a.describeMoment() == b.describeMoment() &&
         std::equal(a.live.begin(), a.live.end(), b.live.begin(), b.live.end(),
                    [&](const LiveValue &x, const LiveValue &y) { return key(x) == key(y); });
}

void stage::printStages(llvm::raw_ostream &os, const MemoryReport &report) {
  std::vector<std::pair<std::string, Table::Alignment>> columns = {{"stage", Table::Left}};
  // The column of the model's buffers is there where the model has some.
  llvm::SmallVector<MemoryClass, 8> shown;
  for (unsigned kind = 0; kind < numMemoryClasses; ++kind)
    if (MemoryClass(kind) != MemoryClass::ModelBuffers || llvm::any_of(report.stages, [](const StageMemory &stage) {
          return stage.peak[MemoryClass::ModelBuffers] != 0;
        }))
      shown.push_back(MemoryClass(kind));
  for (MemoryClass kind : shown)
    columns.emplace_back(getName(kind).str(), Table::Right);
  columns.insert(
      columns.end(),
      {{"peak", Table::Right}, {"peak in bytes", Table::Right}, {"in flight", Table::Right}, {"when", Table::Left}});
  Table table(columns, 2);
  std::vector<std::pair<std::string, const StageMemory *>> groups;
  for (size_t i = 0; i < report.stages.size();) {
    const StageMemory &stage = report.stages[i];
    size_t end = i + 1;
    while (end < report.stages.size() && looksLike(stage, report.stages[end]))
      ++end;
    std::string name = std::to_string(stage.stage);
    if (end > i + 1)
      name += "-" + std::to_string(report.stages[end - 1].stage);
    groups.emplace_back(name, &stage);
    i = end;
  }
  for (auto &[name, stage] : groups) {
    std::vector<std::string> row = {name};
    for (MemoryClass kind : shown)
      row.push_back(formatBytes(stage->peak[kind]));
    row.push_back(formatBytes(stage->peak.getTotal()));
    row.push_back(formatCount(stage->peak.getTotal()));
    row.push_back(std::to_string(stage->inFlight));
    row.push_back(stage->describeMoment());
    table.addRow(std::move(row));
  }
  table.print(os);
  for (auto &[name, stage] : groups) {
    os << "\n  largest at the peak of stage " << name << '\n';
    Table live({{"bytes", Table::Right}, {"copies", Table::Right}, {"class", Table::Left}, {"value", Table::Left}}, 4);
    for (const LiveValue &value : llvm::makeArrayRef(stage->live).take_front(numLargest))
      live.addRow(
          {formatBytes(value.bytes), formatCount(value.copies), getName(value.kind).str(), describe(*value.value)});
    live.print(os);
  }
}

void stage::print(llvm::raw_ostream &os, const MemoryReport &report) {
  for (const SavedBytes &saved : report.saved)
    printSaved(os, saved, report.program->graph->binding);
  os << "memory per rank at the peak\n";
  printStages(os, report);
}
