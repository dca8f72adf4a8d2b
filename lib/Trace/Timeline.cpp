//===- Timeline.cpp - when each node of the traces runs -------------------===//
//
// All ranks of the folder are run, as they wait for each other; of those that are shown
// the times of nodes are kept, 16 bytes a node, and summed up (stage/Time/RankActivity.h).
//
//===----------------------------------------------------------------------===//
#include "stage/Trace/Timeline.h"
#include "Surcharges.h"
#include "TimelineEvents.h"
#include "stage/Support/Files.h"
#include "stage/Support/Ranges.h"
#include "stage/Time/RankActivity.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace stage;
using namespace stage::trace;

namespace {
/// Keeps the times of the ranks that are shown, and when the last node of all ends.
class Recorder : public ExecutionRecorder {
public:
  Recorder(Timeline &timeline) : timeline(timeline), shown(timeline.table.ranks.size(), nullptr) {
    for (RankTimes &times : timeline.ranks) {
      shown[times.slot] = &times;
      times.begin.resize(timeline.table.ranks[times.slot].getNumNodes());
      times.end.resize(times.begin.size());
    }
  }

  void run(uint32_t slot, NodeIndex node, int64_t issued, int64_t begin, int64_t end) override {
    last = std::max(last, end);
    RankTimes *times = shown[slot];
    if (!times)
      return;
    times->begin[node] = begin;
    times->end[node] = end;
    if (issued < begin && timeline.table.ranks[slot].nodes[node].type != ChakraNodeType::CommRecv)
      times->waits.emplace_back(node, issued);
  }

  void deliver(uint32_t sender, NodeIndex send, uint32_t receiver, NodeIndex recv) override {
    if (shown[sender] && shown[receiver])
      timeline.messages.push_back({sender, send, receiver, recv});
  }

  int64_t last = 0;

private:
  Timeline &timeline;
  std::vector<RankTimes *> shown;
};
} // namespace

/// What the ranks that are shown do.
static StepActivity findActivity(const Timeline &timeline, Ticks step) {
  StepActivity result = {step, timeline.table.ranks.size(), {}};
  for (const RankTimes &times : timeline.ranks) {
    const RankTable &rank = timeline.table.ranks[times.slot];
    std::vector<Activity> activities;
    for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
      ActivityKind kind = ActivityKind::Communication;
      if (rank.nodes[node].type == ChakraNodeType::Comp || isCopyNode(rank.nodes[node].type))
        kind = rank.nodes[node].type == ChakraNodeType::Comp && !rank.nodes[node].isCpuOp ? ActivityKind::Compute
                                                                                          : ActivityKind::Copy;
      activities.push_back({kind, times.begin[node], times.end[node]});
    }
    result.ranks.push_back({{rank.rank}, summarize(activities, step)});
  }
  return result;
}

static Existing getExisting(const TimelineOptions &options) {
  return options.force ? Existing::Replace : Existing::Keep;
}

/// Whether the file of events may be written, and is none of those that are read. False after a report.
static bool checkOutput(const TraceFolder &folder, const TimelineOptions &options, DiagnosticEngine &diags) {
  if (options.output.empty())
    return true;
  return llvm::all_of(folder.files,
                      [&](const auto &file) { return checkKeepsInput(options.output, file.second, diags); }) &&
         checkReplaceable(options.output, getExisting(options), diags);
}

/// Those of the options, or all. False after a report.
static bool chooseRanks(const TraceFolder &folder, const TimelineOptions &options, Timeline &timeline,
                        DiagnosticEngine &diags) {
  std::vector<bool> chosen(timeline.table.ranks.size(), options.ranks.empty());
  for (auto [first, last] : options.ranks) {
    // A long range ends at the first rank that is absent.
    for (int64_t rank = first; rank <= last; ++rank) {
      uint32_t slot = rank > int64_t(UINT32_MAX) ? noSlot : timeline.table.findSlot(uint32_t(rank));
      if (slot == noSlot) {
        diags.report(SMLoc(), diag::NoSuchRank) << folder.path << rank;
        return false;
      }
      chosen[slot] = true;
    }
  }
  for (uint32_t slot = 0; slot < chosen.size(); ++slot)
    if (chosen[slot])
      timeline.ranks.push_back({slot, {}, {}, {}});
  return true;
}

/// Whether all nodes of the rank are such as take no time.
static bool needsNoTimes(const RankTable &rank) {
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node)
    if (getRoom(rank, node, Timing{}) != RoomKind::None)
      return false;
  return true;
}

/// Nodes take what the traces say, and surcharges.
static void takeDurations(NodeTable &table, bool mergesStreams, FaultReporter &faults) {
  const RankTable &timed = *llvm::find_if(table.ranks, [](const RankTable &rank) { return !rank.times.empty(); });
  for (RankTable &rank : table.ranks) {
    if (!rank.times.empty())
      rank.durations = findDurations(rank, mergesStreams);
    else if (needsNoTimes(rank))
      rank.durations.assign(rank.getNumNodes(), 0);
    else
      faults.report(diag::RankWithoutTimes, int64_t(rank.rank), int64_t(timed.rank));
  }
}

/// `machine: h100, runtime: ideal`, and others behind it where jobs of several machines have been merged; empty where
/// no rank names any.
static std::string describeMachines(const NodeTable &table) {
  std::vector<std::string> texts;
  for (const RankTable &rank : table.ranks) {
    std::string text = rank.terms.describe();
    if (!text.empty() && !llvm::is_contained(texts, text))
      texts.push_back(text);
  }
  return llvm::join(texts, "; ");
}

std::optional<TimelineResult> stage::trace::runTimeline(llvm::StringRef path, const TimelineOptions &options,
                                                        DiagnosticEngine &diags) {
  std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
  if (!folder || !checkOutput(*folder, options, diags))
    return std::nullopt;
  int64_t numRanks = folder->files.empty() ? 0 : int64_t(folder->files.rbegin()->first) + 1;
  for (auto [first, last] : folder->absent) // groups may name ranks whose traces are elsewhere
    numRanks = std::max(numRanks, int64_t(last) + 1);
  Machine machine = options.machine.value_or(MachineUnits());
  if (!machine.checkNumRanks(numRanks, SMLoc(), diags))
    return std::nullopt;
  machine = machine.usedBy(std::max<int64_t>(numRanks, 1));
  VerifyOptions checks;
  FaultReporter faults(diags, checks.maxShown);
  NodeTable table;
  table.load(*folder, checks, faults, &machine);
  verifyGraph(table, faults);
  verifyTimes(table, faults);
  CommunicationSummary communication;
  if (!faults.getNumErrors())
    communication = verifyCommunication(table, faults);
  bool usesDurations =
      !options.machine && llvm::any_of(table.ranks, [](const RankTable &rank) { return !rank.times.empty(); });
  if (usesDurations && !faults.getNumErrors())
    takeDurations(table, options.mergesStreams, faults);
  faults.finish();
  if (faults.getNumErrors())
    return std::nullopt;

  auto duration = [&](uint32_t slot, NodeIndex node) { return table.ranks[slot].durations[node]; };
  std::string description = options.sendsAreBuffered ? "buffered sends" : "sends that wait for their recv";
  description += usesDurations        ? " and the durations of the traces"
                 : machine.hasRates() ? " and the given rates"
                                      : " and the given units";
  Timing timing = {duration, options.sendsAreBuffered, options.mergesStreams,
                   /*copiesShareRoom=*/options.mergesStreams, description};
  Timeline timeline = {table, timing, {}, {}};
  if (!chooseRanks(*folder, options, timeline, diags))
    return std::nullopt;
  Recorder recorder(timeline);
  if (!simulate(table, communication.numChannels, timing, faults, &recorder))
    return std::nullopt;
  for (RankTimes &rank : timeline.ranks)
    llvm::sort(rank.waits);
  if (!options.output.empty() &&
      !writeFile(
          options.output, [&](llvm::raw_ostream &file) { return printEvents(timeline, file, diags); },
          getExisting(options), diags))
    return std::nullopt;
  TimelineResult result{findActivity(timeline, recorder.last), machine, "", folder->absent};
  if (usesDurations) {
    result.machine = MachineRates();
    result.machinesOfTraces = describeMachines(table);
  }
  return result;
}

bool stage::trace::printTimeline(llvm::StringRef path, const TimelineOptions &options, llvm::raw_ostream &out,
                                 DiagnosticEngine &diags) {
  std::optional<TimelineResult> result = runTimeline(path, options, diags);
  if (!result)
    return false;
  print(out, result->activity, result->machine, result->machinesOfTraces);
  if (!result->absent.empty())
    out << "not run, for lack of their traces: ranks " << formatRanges(result->absent)
        << "; they are taken to send, and to come to collectives, in time\n";
  return true;
}
