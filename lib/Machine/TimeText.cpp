//===- TimeText.cpp - times as people and programs read them --------------===//
#include "stage/Machine/TimeText.h"
#include "stage/Support/Table.h"

using namespace stage;

/// A quotient in decimal digits, rounded half up.
static std::string divide(Ticks time, Ticks unit, unsigned decimals, bool keepsZeros) {
  __int128 scale = 1;
  for (unsigned i = 0; i < decimals; ++i)
    scale *= 10;
  __int128 scaled = (__int128(time) * scale * 2 + unit) / (__int128(unit) * 2);
  std::string text = toDecimal(scaled / scale), digits = toDecimal(scale + scaled % scale);
  llvm::StringRef shown = llvm::StringRef(digits).drop_front();
  if (!keepsZeros)
    shown = shown.rtrim('0');
  return shown.empty() ? text : text + "." + shown.str();
}

std::string stage::toMicros(Ticks ticks) {
  constexpr Ticks ticksPerMicro = ticksPerSecond / 1'000'000;
  return divide(ticks, ticksPerMicro, 6, /*keepsZeros=*/false);
}

std::string TimeUnit::format(Ticks time, unsigned decimals, bool keepsZeros) const {
  return divide(time, ticks, decimals, keepsZeros) + " " + name;
}

const TimeUnit &stage::findTimeUnit(Ticks time) {
  static constexpr TimeUnit units[] = {{"s", ticksPerSecond},
                                       {"ms", ticksPerSecond / 1'000},
                                       {"us", ticksPerSecond / 1'000'000},
                                       {"ns", ticksPerSecond / 1'000'000'000},
                                       {"ps", 1}};
  const TimeUnit *unit = units;
  while (unit->ticks > 1 && time < unit->ticks)
    ++unit;
  return *unit;
}

std::string stage::formatTime(Ticks time) { return findTimeUnit(time).format(time, 3); }
