//===- Machine.cpp - what a device and a link take ------------------------===//
#include "stage/Machine/Machine.h"
#include "stage/Machine/Diagnostics.h"
#include "stage/Machine/Runtime.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace stage;

/// So many bytes, or FLOPs, times a fraction, at so many a second. Rounded to the nearest tick.
static Ticks divide(int64_t amount, int64_t numerator, int64_t denominator, uint64_t rate) {
  if (!amount)
    return 0; // whatever the rate is
  unsigned __int128 product, divisor;
  if (__builtin_mul_overflow((unsigned __int128)amount * uint64_t(numerator), (unsigned __int128)ticksPerSecond,
                             &product))
    return maxTicks;
  divisor = (unsigned __int128)rate * uint64_t(denominator);
  unsigned __int128 rest = product % divisor, ticks = product / divisor + (rest >= divisor - rest);
  return ticks > maxTicks ? maxTicks : Ticks(ticks);
}

/// The part of a rate that is reached, rounded down to a whole number per second.
static uint64_t reduceRate(uint64_t rate, const Rational &efficiency) {
  unsigned __int128 reached = (unsigned __int128)rate * uint64_t(efficiency.num) / uint64_t(efficiency.den);
  return std::max<uint64_t>(uint64_t(reached), rate > 0);
}

Machine::Machine(MachineRates given) : rates(std::move(given)) {
  levels = rates->levels;
  if (levels.empty() && rates->name.empty() && rates->link)
    levels.push_back({"link", INT64_MAX, rates->link, {1, 1}, rates->latency});
  rates->memory = reduceRate(rates->memory, rates->memoryEfficiency);
  for (MachineLevel &level : levels) {
    level.rate = reduceRate(level.rate, level.efficiency);
    blockSizes.push_back(level.ranks);
  }
  if (!blockSizes.empty())
    blockSizes.pop_back();
}

std::string Machine::describe() const {
  if (!rates || rates->name.empty())
    return "";
  std::string text = rates->name + " (" + rates->type + ")";
  for (const std::string &change : rates->changes)
    text += (&change == &rates->changes.front() ? ", with " : ", ") + change;
  return text;
}

std::string Machine::describeMissing(llvm::StringRef missing) const {
  if (!rates || rates->name.empty())
    return ("--" + missing).str();
  llvm::StringRef entry = missing == "copy"          ? "host.rate"
                          : missing == "host-flops"  ? "host.flops"
                          : missing == "host-memory" ? "host.memory"
                                                     : "level";
  return ("'" + entry + "' of machine '" + rates->name + "'").str();
}

bool Machine::checkNumRanks(int64_t numRanks, SMLoc loc, DiagnosticEngine &diags) const {
  if (!rates || rates->name.empty() || numRanks <= getMostRanks())
    return true;
  diags.report(loc, diag::MachineTooSmall) << numRanks << rates->name << getMostRanks();
  return false;
}

GroupPlace Machine::findPlace(llvm::ArrayRef<int64_t> ranks) const {
  if (blockSizes.empty())
    return GroupPlace(int64_t(ranks.size()));
  std::vector<int64_t> sorted(ranks.begin(), ranks.end());
  llvm::sort(sorted);
  return GroupPlace(sorted, blockSizes);
}

/// Whether compute needs a rate that was not said.
static bool lacks(bool isNeeded, uint64_t rate, llvm::StringRef name, llvm::StringRef &missing) {
  if (isNeeded && !rate)
    missing = name;
  return isNeeded && !rate;
}

std::optional<Ticks> Machine::ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  uint64_t flopRate = onHost ? rates->hostFlops : rates->flops;
  uint64_t byteRate = onHost ? rates->hostMemory : rates->memory;
  if (lacks(flops, flopRate, onHost ? "host-flops" : "flops", missing) ||
      lacks(bytes, byteRate, onHost ? "host-memory" : "memory", missing))
    return std::nullopt;
  return std::max(divide(flops, 1, 1, flopRate), divide(bytes, 1, 1, byteRate));
}

std::optional<Ticks> Machine::ofCosts(double flops, double bytes, llvm::StringRef &missing) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  if (lacks(flops, rates->flops, "flops", missing) || lacks(bytes, rates->memory, "memory", missing))
    return std::nullopt;
  auto divide = [](double amount, uint64_t rate) { return amount ? amount / double(rate) : 0; };
  double ticks = std::max(divide(flops, rates->flops), divide(bytes, rates->memory)) * double(ticksPerSecond);
  return ticks < double(maxTicks) ? Ticks(std::floor(ticks + 0.5)) : maxTicks;
}

std::optional<Ticks> Machine::ofCopy(int64_t bytes, llvm::StringRef &missing) const {
  if (!rates)
    return units.copy * ticksPerUnit;
  if (!rates->copy) {
    missing = "copy";
    return std::nullopt;
  }
  return divide(bytes, 1, 1, rates->copy);
}

static Ticks addLatency(Ticks ticks, int64_t steps, Ticks latency) {
  unsigned __int128 sum = (unsigned __int128)steps * uint64_t(latency) + uint64_t(ticks);
  return sum > maxTicks ? maxTicks : Ticks(sum);
}

std::optional<Ticks> Machine::ofMessage(int64_t bytes, const GroupPlace &place, llvm::StringRef &missing) const {
  if (!rates)
    return units.communication * ticksPerUnit;
  if (levels.empty()) {
    missing = "link";
    return std::nullopt;
  }
  const MachineLevel &level = levels[place.getLevel()];
  return addLatency(divide(bytes, 1, 1, level.rate), 1, level.latency);
}

std::optional<Ticks> Machine::ofCollective(CollectiveKind kind, int64_t bytes, const GroupPlace &place,
                                           llvm::StringRef &missing) const {
  if (!rates || levels.empty() || kind == CollectiveKind::Permute)
    return ofMessage(bytes, place, missing);
  int64_t members = place.getNumMembers();
  Traffic traffic = getTraffic(kind, members);
  bool isDirect = kind == CollectiveKind::AllToAll; // each member sends to each other one
  Ticks ticks = 0, latency = 0;
  for (unsigned i = 0; i <= place.getLevel(); ++i) {
    auto [blocks, least] = place.getShare(i);
    bool isLast = i == place.getLevel();
    GroupPlace::Share outer = isLast ? GroupPlace::Share{1, members} : place.getShare(i + 1);
    Ticks passed = isDirect ? divide(bytes, members - least, members, levels[i].rate)
                            : divide(bytes, traffic.numerator, traffic.denominator * least, levels[i].rate);
    ticks = std::max(ticks, passed);
    int64_t links = isDirect ? outer.least - least : blocks - outer.blocks;
    latency = addLatency(latency, links, levels[i].latency);
  }
  int64_t rounds = members > 1 ? traffic.steps / (members - 1) : 0; // 2 of an all_reduce
  return addLatency(ticks, rounds, latency);
}

Ticks Machine::ofMeasured(uint64_t micros) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  return micros > uint64_t(maxTicks / (ticksPerSecond / 1'000'000)) ? maxTicks
                                                                    : Ticks(micros) * (ticksPerSecond / 1'000'000);
}

std::string Runtime::describe() const {
  std::string text = name.empty() ? "ideal" : name;
  for (const std::string &change : changes)
    text += (&change == &changes.front() ? ", with " : ", ") + change;
  return text;
}
