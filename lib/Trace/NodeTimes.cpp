//===- NodeTimes.cpp - how long nodes take --------------------------------===//
//
// A unit for each, or a roofline: compute takes as long as its FLOPs or its bytes,
// whichever takes longer; a collective as long as a ring needs for it.
//
//===----------------------------------------------------------------------===//
#include "NodeTimes.h"
#include "Simulation.h"
#include "stage/Support/RingCost.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace stage;
using namespace stage::trace;

/// Rounded to the nearest tick.
int64_t NodeTimes::divide(int64_t amount, int64_t numerator, int64_t denominator, uint64_t rate) {
  unsigned __int128 product, divisor;
  if (__builtin_mul_overflow((unsigned __int128)amount * uint64_t(numerator), (unsigned __int128)ticksPerSecond,
                             &product))
    return maxTime;
  divisor = (unsigned __int128)rate * uint64_t(denominator);
  unsigned __int128 rest = product % divisor, ticks = product / divisor + (rest >= divisor - rest);
  return ticks > maxTime ? maxTime : int64_t(ticks);
}

std::optional<int64_t> NodeTimes::ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const {
  if (!options.rates)
    return options.units.compute * ticksPerUnit;
  uint64_t flopRate = onHost ? options.rates->hostFlops : options.rates->flops;
  uint64_t byteRate = onHost ? options.rates->hostMemory : options.rates->memory;
  if (!flopRate || !byteRate) {
    missing = flopRate ? (onHost ? "--host-memory" : "--memory") : (onHost ? "--host-flops" : "--flops");
    return std::nullopt;
  }
  return std::max(divide(flops, 1, 1, flopRate), divide(bytes, 1, 1, byteRate));
}

std::optional<int64_t> NodeTimes::ofCopy(int64_t bytes, llvm::StringRef &missing) const {
  if (!options.rates)
    return options.units.copy * ticksPerUnit;
  if (!options.rates->copy) {
    missing = "--copy";
    return std::nullopt;
  }
  return divide(bytes, 1, 1, options.rates->copy);
}

static int64_t addLatency(int64_t ticks, int64_t steps, uint64_t latency) {
  unsigned __int128 sum = (unsigned __int128)steps * latency + uint64_t(ticks);
  return sum > maxTime ? maxTime : int64_t(sum);
}

std::optional<int64_t> NodeTimes::ofMessage(int64_t bytes, llvm::StringRef &missing) const {
  if (!options.rates)
    return options.units.communication * ticksPerUnit;
  if (!options.rates->link) {
    missing = "--link";
    return std::nullopt;
  }
  return addLatency(divide(bytes, 1, 1, options.rates->link), 1, options.rates->latency);
}

/// Of a ring. What simulators do not model (docs/Traces.md) is taken for what moves as much.
static RingCost getCost(ChakraCommType type, int64_t members) {
  switch (type) {
  case ChakraCommType::AllGather:
  case ChakraCommType::Gather:
    return getAllGatherCost(members);
  case ChakraCommType::ReduceScatter:
  case ChakraCommType::ReduceScatterBlock:
  case ChakraCommType::AllToAll:
  case ChakraCommType::Scatter:
    return getScatterCost(members);
  case ChakraCommType::AllReduce:
    return getAllReduceCost(members);
  case ChakraCommType::Reduce:
  case ChakraCommType::Broadcast:
    return {1, 1, members - 1};
  case ChakraCommType::Barrier:
    return {0, 1, 2 * (members - 1)};
  }
  llvm_unreachable("covered switch");
}

std::optional<int64_t> NodeTimes::ofCollective(ChakraCommType type, int64_t bytes, int64_t members,
                                               llvm::StringRef &missing) const {
  if (!options.rates || !options.rates->link)
    return ofMessage(bytes, missing);
  RingCost cost = getCost(type, members);
  int64_t ticks = divide(bytes, cost.numerator, cost.denominator, options.rates->link);
  return addLatency(ticks, cost.steps, options.rates->latency);
}

int64_t NodeTimes::ofMeasured(uint64_t micros) const {
  if (!options.rates)
    return options.units.compute * ticksPerUnit;
  return micros > uint64_t(maxTime / ticksPerUnit) ? maxTime : int64_t(micros) * ticksPerUnit;
}

std::optional<uint64_t> stage::trace::parseQuantity(llvm::StringRef text, uint64_t unit, uint64_t least) {
  int exponent = 0;
  auto [mantissa, power] = text.split('e');
  if (mantissa.size() < text.size()) {
    if (power.getAsInteger(10, exponent) || exponent < -30 || exponent > 30)
      return std::nullopt;
  } else if (size_t prefix = llvm::StringRef(" kMGTPE").find(text.empty() ? '?' : text.back());
             prefix != llvm::StringRef::npos && prefix > 0) {
    exponent = 3 * int(prefix);
    mantissa = text.drop_back();
  }
  auto [whole, fraction] = mantissa.split('.');
  std::string digits = (whole + fraction).str();
  if (digits.empty() || digits.size() > 30 || !llvm::all_of(digits, llvm::isDigit) ||
      (mantissa.contains('.') && fraction.empty()))
    return std::nullopt;
  unsigned __int128 value = 0;
  for (char digit : digits)
    if (__builtin_mul_overflow(value, (unsigned __int128)10, &value) ||
        __builtin_add_overflow(value, digit - '0', &value))
      return std::nullopt;
  if (__builtin_mul_overflow(value, (unsigned __int128)unit, &value))
    return std::nullopt;
  for (exponent -= int(fraction.size()); exponent > 0; --exponent)
    if (__builtin_mul_overflow(value, (unsigned __int128)10, &value))
      return std::nullopt;
  for (; exponent < 0; ++exponent, value /= 10)
    if (value % 10)
      return std::nullopt;
  if (value < least || value > UINT64_MAX)
    return std::nullopt;
  return uint64_t(value);
}
