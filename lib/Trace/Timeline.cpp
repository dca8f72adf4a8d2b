//===- Timeline.cpp - when each node of the traces runs -------------------===//
//
// All ranks of the folder are run, as they wait for each other; of those that are shown
// the times of nodes are kept, 16 bytes a node, and measured: how long something of each
// kind runs, and how long nothing else does. The ends of all intervals in the order of
// time say that, n log n for n nodes.
//
//===----------------------------------------------------------------------===//
#include "stage/Trace/Timeline.h"
#include "TimelineEvents.h"
#include "stage/Support/Files.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Records.h"
#include <algorithm>
#include <array>
#include <map>

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

/// What a rank does during the step. Compute, exposed, copies alone and idle are the whole step.
struct RankSummary {
  int64_t compute = 0;
  int64_t communication = 0;
  int64_t exposed = 0; ///< Of communication: nothing is computed meanwhile.
  int64_t copies = 0;  ///< Copies, and what the host computes.
  int64_t copiesAlone = 0;
  int64_t idle = 0;
  auto operator<=>(const RankSummary &) const = default;
};
} // namespace

static RankSummary summarize(const Timeline &timeline, const RankTimes &times, int64_t step) {
  enum Kind : uint8_t { Compute, Communication, Copy, NumKinds };
  struct Event {
    int64_t time;
    int8_t change;
    Kind kind;
    bool operator<(const Event &other) const { return time < other.time; }
  };
  std::vector<Event> events;
  const RankTable &rank = timeline.table.ranks[times.slot];
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    if (times.begin[node] == times.end[node])
      continue;
    Kind kind = Communication;
    if (rank.nodes[node].type == ChakraNodeType::Comp || isCopyNode(rank.nodes[node].type))
      kind = rank.nodes[node].type == ChakraNodeType::Comp && !rank.nodes[node].isCpuOp ? Compute : Copy;
    events.push_back({times.begin[node], 1, kind});
    events.push_back({times.end[node], -1, kind});
  }
  llvm::sort(events);
  RankSummary summary;
  std::array<int64_t, NumKinds> running = {};
  int64_t before = 0;
  auto pass = [&](int64_t time) {
    int64_t passed = time - std::exchange(before, time);
    summary.compute += running[Compute] ? passed : 0;
    summary.communication += running[Communication] ? passed : 0;
    summary.copies += running[Copy] ? passed : 0;
    if (running[Compute])
      return;
    (running[Communication] ? summary.exposed : running[Copy] ? summary.copiesAlone : summary.idle) += passed;
  };
  for (const Event &event : events) {
    pass(event.time);
    running[event.kind] += event.change;
  }
  pass(step);
  return summary;
}

/// Units, or microseconds to the nanosecond.
static std::string formatTime(int64_t ticks, bool isRate) {
  if (!isRate)
    return formatCount(ticks / Machine::ticksPerUnit);
  constexpr int64_t ticksPerNano = Machine::ticksPerUnit / 1000;
  int64_t nanos = ticks / ticksPerNano + (ticks % ticksPerNano * 2 >= ticksPerNano);
  return formatCount(nanos / 1000) + "." + toDecimal(1000 + nanos % 1000).substr(1);
}

static void printSummary(const Timeline &timeline, int64_t step, bool isRate, llvm::raw_ostream &out) {
  std::map<RankSummary, std::vector<uint32_t>> ranksWith;
  bool hasCopies = false;
  for (const RankTimes &times : timeline.ranks) {
    RankSummary summary = summarize(timeline, times, step);
    hasCopies |= summary.copies > 0;
    ranksWith[summary].push_back(timeline.table.ranks[times.slot].rank);
  }
  std::vector<std::pair<std::vector<uint32_t>, RankSummary>> rows;
  rows.reserve(ranksWith.size());
  for (auto &[summary, ranks] : ranksWith)
    rows.emplace_back(std::move(ranks), summary);
  llvm::sort(rows, [](const auto &a, const auto &b) { return a.first.front() < b.first.front(); });

  size_t numRanks = timeline.table.ranks.size();
  out << "step: " << formatTime(step, isRate) << (isRate ? " us" : " units") << " on " << numRanks
      << (numRanks == 1 ? " rank" : " ranks") << '\n';
  std::vector<Records> table;
  for (const auto &[ranks, summary] : rows) {
    auto format = [&](int64_t ticks) { return Record::Digits{formatTime(ticks, isRate)}; };
    table.push_back({{"", "ranks", formatRanks(ranks)},
                     {"", "compute", format(summary.compute)},
                     {"", "communication", format(summary.communication)},
                     {"", "exposed", format(summary.exposed)},
                     {"", hasCopies ? "copies and host" : "", format(summary.copies)},
                     {"", hasCopies ? "exposed" : "", format(summary.copiesAlone)},
                     {"", "idle", format(summary.idle)},
                     {"", "idle %", Record::Digits{step ? formatPercent(summary.idle, step) : "-"}}});
  }
  printTable(out, table, 0);
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

bool stage::trace::printTimeline(llvm::StringRef path, const TimelineOptions &options, llvm::raw_ostream &out,
                                 DiagnosticEngine &diags) {
  std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
  if (!folder || !checkOutput(*folder, options, diags))
    return false;
  VerifyOptions checks;
  FaultReporter faults(diags, checks.maxShown);
  NodeTable table;
  table.load(*folder, checks, faults, &options.machine);
  verifyGraph(table, faults);
  CommunicationSummary communication;
  if (!faults.getNumErrors())
    communication = verifyCommunication(table, faults);
  faults.finish();
  if (faults.getNumErrors())
    return false;

  auto duration = [&](uint32_t slot, NodeIndex node) { return table.ranks[slot].durations[node]; };
  std::string description = options.sendsAreBuffered ? "buffered sends" : "sends that wait for their recv";
  description += options.machine.hasRates() ? " and the given rates" : " and the given units";
  Timing timing = {duration, options.sendsAreBuffered, options.mergesStreams,
                   /*copiesShareRoom=*/options.mergesStreams, description};
  Timeline timeline = {table, timing, {}, {}};
  if (!chooseRanks(*folder, options, timeline, diags))
    return false;
  Recorder recorder(timeline);
  if (!simulate(table, communication.numChannels, timing, faults, &recorder))
    return false;
  for (RankTimes &rank : timeline.ranks)
    llvm::sort(rank.waits);
  if (!options.output.empty() &&
      !writeFile(
          options.output, [&](llvm::raw_ostream &file) { return printEvents(timeline, file, diags); },
          getExisting(options), diags))
    return false;
  printSummary(timeline, recorder.last, options.machine.hasRates(), out);
  if (!folder->absent.empty())
    out << "not run, for lack of their traces: ranks " << formatRanges(folder->absent)
        << "; they are taken to send, and to come to collectives, in time\n";
  return true;
}
