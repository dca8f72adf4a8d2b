//===- MachineEntries.cpp - a machine with one number changed -------------===//
//
// Problem: what would a step take if memory, or a link, were 1 % faster? The step is priced again, on a machine that is
// the same but for one number.
//
//   h100 with 101/100 of `rail.rate`       each port sends 50.5GB/s, of which 0.85 are reached
//   h100 with 101/100 of `node.rate`       454.5GB/s, and what was measured inside a node takes 1/1.01 of its time
//   h100 with 9/10 of `rail.hop`           12.6us for a link instead of 14us
//
// Limits: tables of products and attention are ratios to a roof, and keep their shapes. A table of a collective says
// time without the parts that bytes and links take, and is divided as a whole.
//
//===----------------------------------------------------------------------===//
#include "RateMath.h"
#include "stage/Machine/Machine.h"

using namespace stage;
using Kind = MachineEntry::Kind;

llvm::StringRef stage::getFlopsEntry(size_t type) {
  static constexpr llvm::StringLiteral names[] = {"flops.f32", "flops.f16", "flops.bf16",
                                                  "flops.f8",  "flops.f4",  "flops.tf32"};
  static_assert(std::size(names) == numOperandTypes);
  return names[type];
}

std::vector<MachineEntry> Machine::listEntries() const {
  std::vector<MachineEntry> entries;
  if (!isDeclared())
    return entries;
  auto add = [&](bool isSaid, Kind kind, size_t index = 0) {
    if (isSaid)
      entries.push_back({kind, index});
  };
  for (size_t type = 0; type < numOperandTypes; ++type) {
    bool isHalf = type == size_t(DType::F16) || type == size_t(DType::BF16);
    bool isOther = onlyHalf && isHalf && type != size_t(*onlyHalf);
    add(rates->types[type].flops && !isOther, Kind::Flops, type);
  }
  add(bool(rates->memory), Kind::Memory);
  add(bool(rates->copy), Kind::Copy);
  add(bool(rates->hostFlops), Kind::HostFlops);
  add(bool(rates->hostMemory), Kind::HostMemory);
  for (size_t level = 0; level < rates->levels.size(); ++level)
    add(true, Kind::LevelRate, level);
  for (size_t level = 0; level < rates->levels.size(); ++level) {
    add(rates->levels[level].base, Kind::LevelBase, level);
    add(rates->levels[level].hop, Kind::LevelHop, level);
  }
  add(rates->kernelLeast, Kind::KernelLeast);
  for (size_t type = 0; type < numOperandTypes; ++type)
    add(rates->types[type].smallFloor.value_or(0), Kind::SmallFloor, type);
  add(rates->cacheFloor, Kind::CacheFloor);
  add(rates->latentFloor.value_or(0), Kind::LatentFloor);
  add(rates->promptFloor.value_or(0), Kind::PromptFloor);
  add(rates->expertFloor, Kind::ExpertFloor);
  return entries;
}

std::string Machine::getName(const MachineEntry &entry) const {
  switch (entry.kind) {
  case Kind::Flops:
    return getFlopsEntry(entry.index).str();
  case Kind::Memory:
    return "memory.rate";
  case Kind::Copy:
    return "host.rate";
  case Kind::HostFlops:
    return "host.flops";
  case Kind::HostMemory:
    return "host.memory";
  case Kind::LevelRate:
    return rates->levels[entry.index].name + ".rate";
  case Kind::LevelBase:
    return rates->levels[entry.index].name + ".base";
  case Kind::LevelHop:
    return rates->levels[entry.index].name + ".hop";
  case Kind::KernelLeast:
    return "kernel.least";
  case Kind::SmallFloor:
    return ("small.floor." + getFlopsEntry(entry.index).split('.').second).str();
  case Kind::CacheFloor:
    return "cache.floor";
  case Kind::LatentFloor:
    return "latent.floor";
  case Kind::PromptFloor:
    return "prompt.floor";
  case Kind::ExpertFloor:
    return "experts.floor";
  }
  llvm_unreachable("no other kinds");
}

Machine Machine::with(const MachineEntry &entry, const Rational &times) const {
  Machine machine = *this;
  MachineRates &changed = *machine.rates;
  auto scale = [&](Rate &rate) { rate = RateMath::reduce(rate, times); };
  switch (entry.kind) {
  case Kind::Flops:
    scale(changed.types[entry.index].flops);
    if (onlyHalf && entry.index == size_t(*onlyHalf))
      scale(changed.types[size_t(*onlyHalf == DType::F16 ? DType::BF16 : DType::F16)].flops);
    if (std::optional<DType> type = parseDType(changed.type); type && isFloat(*type))
      changed.flops = changed.types[size_t(*type)].flops;
    break;
  case Kind::Memory:
    scale(changed.memory);
    break;
  case Kind::Copy:
    scale(changed.copy);
    break;
  case Kind::HostFlops:
    scale(changed.hostFlops);
    break;
  case Kind::HostMemory:
    scale(changed.hostMemory);
    break;
  case Kind::LevelRate: {
    MachineLevel &level = changed.levels[entry.index];
    scale(level.rate);
    if (std::optional<Rational> efficiency = level.collectiveEfficiency.mul(times))
      level.collectiveEfficiency = *efficiency;
    break;
  }
  case Kind::LevelBase:
    changed.levels[entry.index].base = multiply(changed.levels[entry.index].base, times);
    break;
  case Kind::LevelHop:
    changed.levels[entry.index].hop = multiply(changed.levels[entry.index].hop, times);
    break;
  case Kind::KernelLeast:
    changed.kernelLeast = multiply(changed.kernelLeast, times);
    break;
  case Kind::SmallFloor:
    changed.types[entry.index].smallFloor = multiply(*changed.types[entry.index].smallFloor, times);
    break;
  case Kind::CacheFloor:
    changed.cacheFloor = multiply(changed.cacheFloor, times);
    break;
  case Kind::LatentFloor:
    changed.latentFloor = multiply(*changed.latentFloor, times);
    break;
  case Kind::PromptFloor:
    changed.promptFloor = multiply(*changed.promptFloor, times);
    break;
  case Kind::ExpertFloor:
    changed.expertFloor = multiply(changed.expertFloor, times);
    break;
  }
  machine.findReached();
  return machine;
}
