//===- RankActivity.cpp - what a rank does during a step ------------------===//
#include "stage/Time/RankActivity.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Records.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <map>

using namespace stage;

RankActivity stage::summarize(llvm::ArrayRef<Activity> activities, Ticks step) {
  struct Event {
    Ticks time;
    int8_t change;
    ActivityKind kind;
    bool operator<(const Event &other) const { return time < other.time; }
  };
  std::vector<Event> events;
  for (auto [kind, begin, end] : activities)
    if (begin != end) {
      events.push_back({begin, 1, kind});
      events.push_back({end, -1, kind});
    }
  llvm::sort(events);
  RankActivity sums;
  std::array<int64_t, 3> running = {};
  Ticks before = 0;
  auto pass = [&](Ticks time) {
    Ticks passed = time - std::exchange(before, time);
    bool computes = running[size_t(ActivityKind::Compute)], copies = running[size_t(ActivityKind::Copy)],
         communicates = running[size_t(ActivityKind::Communication)];
    sums.compute += computes ? passed : 0;
    sums.communication += communicates ? passed : 0;
    sums.copies += copies ? passed : 0;
    if (!computes)
      (communicates ? sums.exposed : copies ? sums.copiesAlone : sums.idle) += passed;
  };
  for (const Event &event : events) {
    pass(event.time);
    running[size_t(event.kind)] += event.change;
  }
  pass(step);
  return sums;
}

/// Units, or microseconds to the nanosecond.
static std::string formatTime(Ticks ticks, bool inMicroseconds) {
  if (!inMicroseconds)
    return formatCount(ticks / Machine::ticksPerUnit);
  constexpr Ticks ticksPerNano = ticksPerSecond / 1'000'000'000;
  int64_t nanos = ticks / ticksPerNano + (ticks % ticksPerNano * 2 >= ticksPerNano);
  return formatCount(nanos / 1000) + "." + toDecimal(1000 + nanos % 1000).substr(1);
}

void stage::print(llvm::raw_ostream &os, StepActivity activity, const Machine &machine, llvm::StringRef heading) {
  bool inMicroseconds = machine.hasRates();
  std::map<RankActivity, std::vector<uint32_t>> ranksWith;
  bool hasCopies = false;
  for (auto &[ranks, sums] : activity.ranks) {
    hasCopies |= sums.copies > 0;
    llvm::append_range(ranksWith[sums], ranks);
  }
  std::vector<std::pair<std::vector<uint32_t>, RankActivity>> rows;
  rows.reserve(ranksWith.size());
  for (auto &[sums, ranks] : ranksWith) {
    llvm::sort(ranks);
    rows.emplace_back(std::move(ranks), sums);
  }
  llvm::sort(rows, [](const auto &a, const auto &b) { return a.first.front() < b.first.front(); });

  if (!heading.empty())
    os << heading << '\n';
  else if (std::string name = machine.describe(); !name.empty())
    os << "machine: " << name << '\n';
  os << "step: " << formatTime(activity.step, inMicroseconds) << (inMicroseconds ? " us" : " units") << " on "
     << activity.numRanks << (activity.numRanks == 1 ? " rank" : " ranks") << '\n';
  std::vector<Records> table;
  for (const auto &[ranks, sums] : rows) {
    auto format = [&](Ticks ticks) { return Record::Digits{formatTime(ticks, inMicroseconds)}; };
    table.push_back({{"", "ranks", formatRanks(ranks)},
                     {"", "compute", format(sums.compute)},
                     {"", "communication", format(sums.communication)},
                     {"", "exposed", format(sums.exposed)},
                     {"", hasCopies ? "copies and host" : "", format(sums.copies)},
                     {"", hasCopies ? "exposed" : "", format(sums.copiesAlone)},
                     {"", "idle", format(sums.idle)},
                     {"", "idle %", Record::Digits{activity.step ? formatPercent(sums.idle, activity.step) : "-"}}});
  }
  printTable(os, table, 0);
}
