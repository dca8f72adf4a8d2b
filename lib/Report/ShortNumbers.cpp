//===- ShortNumbers.cpp - numbers of three digits for people --------------===//
#include "ShortNumbers.h"
#include "stage/Support/Table.h"
#include "llvm/Support/Format.h"

using namespace stage;

/// What rounds to 1,000 is shown in the next unit.
constexpr double mostShown = 999.5;

std::string stage::shortenDigits(double number) {
  std::string text;
  int digits = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  for (double rest = number; rest > 0 && rest < 0.9995 && digits < 9; rest *= 10)
    ++digits;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, number);
  return text;
}

/// The first unit is one that has no parts.
static std::string shorten(double number, double base, llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  for (; number >= mostShown && unit + 1 < units.size(); ++unit)
    number /= base;
  return (unit ? shortenDigits(number) : formatCount(__int128(number + 0.5))) + " " + units[unit];
}

std::string stage::shortenCount(double count) {
  constexpr double mostExact = 9999;
  if (count <= mostExact)
    return formatCount(__int128(count + 0.5));
  return shorten(count, 1000, {"", "thousand", "million", "billion", "trillion", "thousand trillions"});
}

std::string stage::shortenBytes(double bytes) {
  return shorten(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string stage::shortenFlops(double flops) {
  return shorten(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"});
}

std::string stage::shortenJoules(double joules) {
  return shorten(joules * 1000, 1000, {"mJ", "J", "kJ", "MJ", "GJ", "TJ"});
}

std::string stage::shortenTime(Ticks ticks) {
  constexpr double ticksPerNano = 1e3;
  double seconds = double(ticks) / double(ticksPerSecond);
  if (seconds >= mostShown)
    return formatCount(__int128(seconds + 0.5)) + " s";
  return shorten(double(ticks) / ticksPerNano, 1000, {"ns", "us", "ms", "s"});
}

std::string stage::shortenShare(double share) {
  constexpr double percent = 100;
  return shortenDigits(share * percent) + " %";
}
