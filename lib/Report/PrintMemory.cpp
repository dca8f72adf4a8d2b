//===- PrintMemory.cpp - the memory report as text ------------------------===//
#include "ReportRecords.h"
#include "ValueNames.h"

using namespace stage;

/// Lines of the list of what is live at a peak.
static constexpr size_t numLargest = 8;

/// ` (moe)`, or `, case 1` where no modules tell the layers apart.
static std::string describeCase(const SavedBytes &saved) {
  if (!saved.caseNumber)
    return "";
  std::string kind = describeKind(*saved.loop, *saved.caseNumber);
  return kind.empty() ? ", case " + std::to_string(*saved.caseNumber) : " (" + kind + ")";
}

static void printSaved(llvm::raw_ostream &os, const SavedBytes &saved, const SizeBinding &binding) {
  os << (saved.space == MemorySpace::Host ? "bytes kept on the host for backward" : "bytes kept for backward");
  if (saved.loop)
    os << " by one iteration of '" << saved.loop->name << "'" << describeCase(saved) << ": ";
  else
    os << " outside of repeats: ";
  os << saved.bytes;
  if (SizeValue here = evaluateCount(saved.bytes, binding)) {
    os << " = " << formatCount(here.value.num);
    if (here.value.num >= 1024)
      os << " (" << formatBytes(here.value.num) << ")";
  }
  os << '\n';
  Table table({{"bytes", Table::Left}, {"value", Table::Left}, {"here", Table::Right}}, 2);
  for (auto [name, value] : llvm::zip(nameValues(saved.values), saved.values)) {
    SizeValue here = evaluateCount(value.bytes, binding); // nothing where ranks differ
    table.addRow({value.bytes.str(), name, here ? formatBytes(here.value.num) : ""});
  }
  if (!table.empty())
    table.print(os);
  os << '\n';
}

namespace {
/// A memory of a stage, as it is shown.
struct PeakRow {
  const StageMemory *stage;
  const MemoryPeak *memory;
};
} // namespace

/// Neighbouring stages that show the same row are shown once: `1-6`.
static bool looksLike(const PeakRow &left, const PeakRow &right) {
  const MemoryPeak &a = *left.memory, &b = *right.memory;
  auto key = [](const LiveValue &live) {
    return std::tuple(live.value, live.name, live.kind, live.copies, live.bytes);
  };
  return left.stage->stage + 1 == right.stage->stage && a.peak.bytes == b.peak.bytes && a.leastPeak == b.leastPeak &&
         left.stage->inFlight == right.stage->inFlight && a.describeMoment() == b.describeMoment() &&
         std::equal(a.live.begin(), a.live.end(), b.live.begin(), b.live.end(),
                    [&](const LiveValue &x, const LiveValue &y) { return key(x) == key(y); });
}

/// The peak of each kind of unit, of the device; software decides which kind holds most.
static void printMoments(llvm::raw_ostream &os, llvm::ArrayRef<std::pair<std::string, PeakRow>> groups) {
  std::vector<Records> table;
  for (auto &[name, group] : groups) {
    if (group.memory != group.stage || group.stage->moments.size() < 2)
      continue;
    for (const MemoryMoment &moment : group.stage->moments)
      table.push_back({{"", "stage", name},
                       {"", "units", getName(moment.phase).str()},
                       {"", "activations", moment.peak[MemoryClass::Activations], formatBytes},
                       {"", "temporaries", moment.peak[MemoryClass::Temporaries], formatBytes},
                       {"", "buffers", moment.peak[MemoryClass::Buffers], formatBytes},
                       {"", "peak", moment.peak.getTotal(), formatBytes},
                       {"", "when", moment.describeMoment()}});
  }
  if (table.empty())
    return;
  os << "\n  peak of each kind of unit\n";
  printTable(os, table, 4);
}

static void printPeaks(llvm::raw_ostream &os, llvm::ArrayRef<PeakRow> rows, llvm::StringRef ofMemory, bool listsAll) {
  auto any = [&](auto holds) { return llvm::any_of(rows, [&](const PeakRow &row) { return holds(*row.memory); }); };
  // The columns of the model's buffers, of its caches and of residents are there where some exist.
  auto isOptional = [](MemoryClass kind) { return kind >= MemoryClass::ModelBuffers; };
  llvm::SmallVector<MemoryClass, 8> shown;
  for (unsigned number = 0; number < numMemoryClasses; ++number)
    if (MemoryClass kind = MemoryClass(number);
        !isOptional(kind) || any([&](const MemoryPeak &memory) { return memory.peak[kind] != 0; }))
      shown.push_back(kind);
  // Of the rank that holds least: where some hold more than others.
  bool showsLeast = any([](const MemoryPeak &memory) { return memory.leastPeak != memory.peak.getTotal(); });
  std::vector<Records> table;
  std::vector<std::pair<std::string, PeakRow>> groups;
  for (size_t i = 0, end; i < rows.size(); i = end) {
    for (end = i + 1; end < rows.size() && looksLike(rows[end - 1], rows[end]);)
      ++end;
    const MemoryPeak &memory = *rows[i].memory;
    groups.emplace_back(describeStages(rows[i].stage->stage, rows[end - 1].stage->stage), rows[i]);
    Records &row = table.emplace_back(1, Record{"", "stage", groups.back().first});
    for (MemoryClass kind : shown)
      row.push_back({"", getName(kind).str(), memory.peak[kind], formatBytes});
    row.insert(row.end(), {{"", "peak", memory.peak.getTotal(), formatBytes},
                           {"", "peak in bytes", memory.peak.getTotal()},
                           {"", showsLeast ? "least" : "", memory.leastPeak},
                           {"", "in flight", rows[i].stage->inFlight, toDecimal},
                           {"", "when", memory.describeMoment()}});
  }
  printTable(os, table, 2);
  printMoments(os, groups);
  auto getPeak = [](const auto &group) { return group.second.memory->peak.getTotal(); };
  auto worst = std::max_element(groups.begin(), groups.end(),
                                [&](const auto &a, const auto &b) { return getPeak(a) < getPeak(b); });
  for (auto &[name, group] : listsAll ? llvm::makeArrayRef(groups) : llvm::makeArrayRef(*worst)) {
    os << "\n  largest at the peak of " << ofMemory << "stage " << name << '\n';
    Table live({{"bytes", Table::Right}, {"copies", Table::Right}, {"class", Table::Left}, {"value", Table::Left}}, 4);
    llvm::ArrayRef<LiveValue> largest = llvm::makeArrayRef(group.memory->live).take_front(numLargest);
    for (auto [name, value] : llvm::zip(nameValues(largest, /*withClasses=*/false), largest))
      live.addRow({formatBytes(value.bytes), formatCount(value.copies), getName(value.kind).str(), name});
    live.print(os);
  }
}

void stage::printStages(llvm::raw_ostream &os, const MemoryReport &report, bool listsAll) {
  std::vector<PeakRow> devices, hosts;
  for (const StageMemory &stage : report.stages) {
    devices.push_back({&stage, &stage});
    if (stage.host)
      hosts.push_back({&stage, &*stage.host});
  }
  printPeaks(os, devices, "", listsAll);
  if (const std::optional<AllocatorUse> &use = report.allocator) {
    os << "\n  allocator, on stage " << use->stage << ": " << formatBytes(use->allocated)
       << " allocated at most, with rounding, and " << formatBytes(use->reserved) << " reserved";
    if (!use->fits)
      os << ", more than the machine has";
    else if (use->stalls)
      os << "; unused segments are given back " << formatCount(use->stalls) << (use->stalls == 1 ? " time" : " times")
         << ", which stalls the device";
    os << '\n';
  }
  if (hosts.empty())
    return;
  os << "\nhost memory per rank at its peak\n";
  printPeaks(os, hosts, "the host of ", listsAll);
}

void stage::printStages(llvm::raw_ostream &os, const MemoryReport &report) {
  printStages(os, report, /*listsAll=*/true);
}

void stage::print(llvm::raw_ostream &os, const MemoryReport &report) {
  for (const SavedBytes &saved : report.saved)
    printSaved(os, saved, report.program->graph->binding);
  os << "memory per rank at the peak\n";
  printStages(os, report);
}
