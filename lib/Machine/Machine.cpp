//===- Machine.cpp - what a device and a link take ------------------------===//
#include "stage/Machine/Machine.h"
#include "RateMath.h"
#include "stage/Machine/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <utility>

using namespace stage;

/// f16 and bf16 stand for each other, entry by entry.
static void shareHalves(TypeRates &a, TypeRates &b) {
  for (auto [to, from] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!to->flops)
      to->flops = from->flops;
    if (!to->contraction.isSaid())
      to->contraction = from->contraction;
    if (!to->attention.isSaid())
      to->attention = from->attention;
    if (!to->sustained)
      to->sustained = from->sustained;
    if (!to->small)
      to->small = from->small;
    if (!to->experts)
      to->experts = from->experts;
  }
}

/// What efficiencies leave of rates.
void Machine::findReached() {
  levels = rates->levels;
  if (levels.empty() && rates->name.empty() && rates->link)
    levels.push_back({.name = "link", .ranks = INT64_MAX, .rate = rates->link, .hop = rates->latency});
  memory = RateMath::reduce(rates->memory, rates->memoryEfficiency);
  for (MachineLevel &level : levels) {
    Rational part = level.efficiency;
    if (std::optional<Rational> reached = part.div(level.oversubscription))
      part = *reached;
    level.rate = RateMath::reduce(level.rate, part);
  }
}

Machine::Machine(MachineRates given) : rates(std::move(given)) {
  findReached();
  for (const MachineLevel &level : levels)
    blockSizes.push_back(level.ranks);
  if (!blockSizes.empty())
    blockSizes.pop_back();
  TypeRates &f16 = rates->types[size_t(DType::F16)], &bf16 = rates->types[size_t(DType::BF16)];
  if (bool(f16.flops) != bool(bf16.flops))
    onlyHalf = f16.flops ? DType::F16 : DType::BF16;
  // An option may have replaced the FLOPs of the one type.
  if (std::optional<DType> type = parseDType(rates->type); type && isFloat(*type))
    rates->types[size_t(*type)].flops = rates->flops;
  shareHalves(f16, bf16);
  // Without a table a share of the roof is one of FLOP/s, too. What is assumed of products is not said of few rows.
  for (TypeRates &type : rates->types)
    if (!type.small && !type.contraction.table)
      type.small = type.contraction.share;
}

Machine Machine::withExchange(const Runtime &runtime) const {
  Machine machine = *this;
  size_t inner = std::max<size_t>(levels.size(), 2) - 1; // networks are the hardware's
  if (runtime.exchangeEfficiency.num)
    for (size_t i = 0; i < std::min(inner, levels.size()); ++i)
      machine.levels[i].exchangeRate = RateMath::reduce(rates->levels[i].rate, runtime.exchangeEfficiency);
  return machine;
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
  if (missing.startswith("flops.")) {
    std::string types;
    for (size_t i = 0; i < numOperandTypes; ++i)
      if (rates->types[i].flops)
        types += (types.empty() ? "" : ", ") + (i == tf32Index ? "tf32" : stage::getName(DType(i))).str();
    return ("'" + missing + "' of machine '" + rates->name + "' (it has flops of " + types + ")").str();
  }
  llvm::StringRef entry = missing == "copy"          ? "host.rate"
                          : missing == "host-flops"  ? "host.flops"
                          : missing == "host-memory" ? "host.memory"
                                                     : "level";
  return ("'" + entry + "' of machine '" + rates->name + "'").str();
}

/// Of a level with room for `room` ranks: how many of a job's it holds, in whole blocks of the level inside of it.
static int64_t findUsed(int64_t numRanks, int64_t inside, int64_t room) {
  for (int64_t blocks = std::min(room, numRanks) / inside; blocks > 1; --blocks)
    if (numRanks / inside % blocks == 0)
      return inside * blocks;
  return inside;
}

/// The same of any level. One block holds a job that has no more ranks than it says.
static int64_t findUsed(int64_t numRanks, int64_t inside, const MachineLevel &level) {
  return level.used ? std::min(level.used, numRanks) : findUsed(numRanks, inside, level.ranks);
}

bool Machine::checkNumRanks(int64_t numRanks, SMLoc loc, DiagnosticEngine &diags) const {
  if (!rates || rates->name.empty())
    return true;
  if (numRanks > getMostRanks()) {
    diags.report(loc, diag::MachineTooSmall)
        << numRanks << rates->name << getMostRanks()
        << (levels.empty()
                ? "give it a level, as in 'level rail { ranks = " + std::to_string(numRanks) + "; rate = 50GB/s; }'"
                : "give its outermost level as many, as in 'level " + levels.back().name +
                      " { ranks = " + std::to_string(numRanks) + "; ... }', or the strategy fewer ranks");
    return false;
  }
  if (isFilled)
    return true;
  int64_t inside = 1; // ranks that each block of the level inside has room for
  for (const MachineLevel &level : levels) {
    if (level.used && numRanks > level.used && numRanks % level.used) {
      int64_t other = numRanks % inside ? 1 : findUsed(numRanks, inside, level.ranks);
      std::string entry = level.name + ".used";
      diags.report(loc, diag::UsedNotDivisible)
          << numRanks << level.used << entry << rates->name
          << (other > 1 ? "write -D machine." + entry + "=" + std::to_string(other) : "leave '" + entry + "' out");
      return false;
    }
    inside *= (level.used ? level.used : level.ranks) / inside;
  }
  return true;
}

Machine Machine::usedBy(int64_t numRanks) const {
  Machine machine = *this;
  if (std::exchange(machine.isFilled, true))
    return machine;
  int64_t inside = 1;
  machine.blockSizes.clear();
  for (MachineLevel &level : machine.levels) {
    level.ranks = inside = findUsed(numRanks, inside, level);
    machine.blockSizes.push_back(inside);
  }
  if (!machine.blockSizes.empty())
    machine.blockSizes.pop_back();
  return machine;
}

GroupPlace Machine::findPlace(llvm::ArrayRef<int64_t> ranks) const {
  if (blockSizes.empty())
    return GroupPlace(int64_t(ranks.size()));
  std::vector<int64_t> sorted(ranks.begin(), ranks.end());
  llvm::sort(sorted);
  return GroupPlace(sorted, blockSizes);
}

/// Whether compute needs a rate that was not said.
static bool lacks(bool isNeeded, Rate rate, llvm::StringRef name, llvm::StringRef &missing) {
  if (isNeeded && !rate)
    missing = name;
  return isNeeded && !rate;
}

std::optional<Ticks> Machine::ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  Rate flopRate = onHost ? rates->hostFlops : rates->flops, byteRate = onHost ? rates->hostMemory : memory;
  if (lacks(flops, flopRate, onHost ? "host-flops" : "flops", missing) ||
      lacks(bytes, byteRate, onHost ? "host-memory" : "memory", missing))
    return std::nullopt;
  return std::max(RateMath::divide(flops, 1, 1, flopRate), RateMath::divide(bytes, 1, 1, byteRate));
}

std::optional<Ticks> Machine::ofCosts(double flops, double bytes, llvm::StringRef &missing) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  if (lacks(flops, rates->flops, "flops", missing) || lacks(bytes, memory, "memory", missing))
    return std::nullopt;
  return roundTicks(std::max(RateMath::divide(flops, rates->flops), RateMath::divide(bytes, memory)));
}

std::optional<Ticks> Machine::ofCopy(int64_t bytes, llvm::StringRef &missing) const {
  if (!rates)
    return units.copy * ticksPerUnit;
  if (!rates->copy) {
    missing = "copy";
    return std::nullopt;
  }
  return RateMath::divide(bytes, 1, 1, rates->copy);
}

Ticks Machine::ofMeasured(uint64_t micros) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  return micros > uint64_t(maxTicks / (ticksPerSecond / 1'000'000)) ? maxTicks
                                                                    : Ticks(micros) * (ticksPerSecond / 1'000'000);
}
