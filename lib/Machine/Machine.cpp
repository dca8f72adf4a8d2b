//===- Machine.cpp - what a device and a link take ------------------------===//
#include "stage/Machine/Machine.h"
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

std::optional<Ticks> Machine::ofMessage(int64_t bytes, llvm::StringRef &missing) const {
  if (!rates)
    return units.communication * ticksPerUnit;
  if (!rates->link) {
    missing = "link";
    return std::nullopt;
  }
  return addLatency(divide(bytes, 1, 1, rates->link), 1, rates->latency);
}

std::optional<Ticks> Machine::ofCollective(CollectiveKind kind, int64_t bytes, int64_t members,
                                           llvm::StringRef &missing) const {
  if (!rates || !rates->link)
    return ofMessage(bytes, missing);
  Traffic traffic = getTraffic(kind, members);
  Ticks ticks = divide(bytes, traffic.numerator, traffic.denominator, rates->link);
  return addLatency(ticks, traffic.steps, rates->latency);
}

Ticks Machine::ofMeasured(uint64_t micros) const {
  if (!rates)
    return units.compute * ticksPerUnit;
  return micros > uint64_t(maxTicks / (ticksPerSecond / 1'000'000)) ? maxTicks
                                                                    : Ticks(micros) * (ticksPerSecond / 1'000'000);
}
