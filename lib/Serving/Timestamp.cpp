//===- Timestamp.cpp - dates and times in nanoseconds ---------------------===//
#include "Timestamp.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;

/// Takes so many digits, and the character behind them if there is to be one, off the front.
static bool takeNumber(StringRef &text, size_t digits, StringRef ends, unsigned &number) {
  if (text.size() < digits || !llvm::all_of(text.take_front(digits), llvm::isDigit))
    return false;
  text.take_front(digits).getAsInteger(10, number);
  text = text.drop_front(digits);
  if (ends.empty())
    return true;
  if (text.empty() || !ends.contains(text.front()))
    return false;
  text = text.drop_front();
  return true;
}

std::optional<int64_t> stage::serving::parseTimestamp(StringRef text) {
  unsigned year, month, day, hour, minute, second, fraction = 0;
  if (!takeNumber(text, 4, "-", year) || !takeNumber(text, 2, "-", month) || !takeNumber(text, 2, " T", day) ||
      !takeNumber(text, 2, ":", hour) || !takeNumber(text, 2, ":", minute) || !takeNumber(text, 2, "", second))
    return std::nullopt;
  if (text.consume_front(".")) {
    size_t digits = text.take_while(llvm::isDigit).size();
    if (digits == 0 || digits > 9 || !takeNumber(text, digits, "", fraction))
      return std::nullopt;
    for (; digits < 9; ++digits)
      fraction *= 10;
  }
  std::chrono::year_month_day date{std::chrono::year(int(year)), std::chrono::month(month), std::chrono::day(day)};
  // From 1970 on, as times are not negative; nanoseconds in 64 bits end in 2262.
  bool isInRange = year >= 1970 && year <= 2200 && date.ok() && hour < 24 && minute < 60 && second < 60;
  if (!isInRange || !(text.empty() || text == "Z" || text == "+00:00"))
    return std::nullopt;
  int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + fraction;
}

std::string stage::serving::formatSeconds(int64_t nanoseconds) {
  constexpr int64_t second = 1'000'000'000;
  std::string digits = std::to_string(second + nanoseconds % second).substr(1);
  StringRef fraction = StringRef(digits).rtrim('0');
  return std::to_string(nanoseconds / second) + (fraction.empty() ? "" : "." + fraction.str());
}
