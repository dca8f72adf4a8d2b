//===- Quantity.cpp - amounts with a unit ---------------------------------===//
#include "stage/Symbolic/Quantity.h"
#include "stage/Symbolic/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {
struct Unit {
  const char *name;
  Rational factor; ///< Base units in one.
  Dimension dimension;
};
struct Prefix {
  const char *name;
  __int128 factor;
};
} // namespace

static const Prefix decimalPrefixes[] = {{"", 1},
                                         {"k", 1'000},
                                         {"M", 1'000'000},
                                         {"G", 1'000'000'000},
                                         {"T", 1'000'000'000'000},
                                         {"P", 1'000'000'000'000'000},
                                         {"E", 1'000'000'000'000'000'000}};
static const Prefix binaryPrefixes[] = {{"Ki", __int128(1) << 10},
                                        {"Mi", __int128(1) << 20},
                                        {"Gi", __int128(1) << 30},
                                        {"Ti", __int128(1) << 40},
                                        {"Pi", __int128(1) << 50}};

static const Unit timeUnits[] = {{"ps", {1, 1'000'000'000'000}, {.seconds = 1}},
                                 {"ns", {1, 1'000'000'000}, {.seconds = 1}},
                                 {"us", {1, 1'000'000}, {.seconds = 1}},
                                 {"ms", {1, 1'000}, {.seconds = 1}},
                                 {"s", {1, 1}, {.seconds = 1}},
                                 {"min", {60, 1}, {.seconds = 1}},
                                 {"h", {3600, 1}, {.seconds = 1}}};
/// What takes a prefix; bits, of which eight are a byte, are read and never printed.
static const Unit scaledUnits[] = {{"B", {1, 1}, {.bytes = 1}},
                                   {"bit", {1, 8}, {.bytes = 1}},
                                   {"FLOP", {1, 1}, {.operations = 1}},
                                   {"W", {1, 1}, {.watts = 1}},
                                   {"USD", {1, 1}, {.dollars = 1}}};

static std::optional<Unit> findTimeUnit(StringRef name) {
  for (const Unit &unit : timeUnits)
    if (name == unit.name)
      return unit;
  return std::nullopt;
}

/// The unit of an amount, without `/s`.
static std::optional<Unit> findUnit(StringRef name) {
  if (std::optional<Unit> time = findTimeUnit(name))
    return time;
  for (const Unit &unit : scaledUnits) {
    StringRef prefix = name;
    if (!prefix.consume_back(unit.name))
      continue;
    auto scale = [&](const Prefix &with) { return Unit{"", *unit.factor.mul({with.factor, 1}), unit.dimension}; };
    for (const Prefix &with : decimalPrefixes)
      if (prefix == with.name || (prefix == "K" && StringRef(with.name) == "k"))
        return scale(with);
    if (unit.dimension.bytes)
      for (const Prefix &with : binaryPrefixes)
        if (prefix == with.name)
          return scale(with);
  }
  return std::nullopt;
}

/// `GB/s`.
static std::optional<Unit> findWholeUnit(StringRef text) {
  auto [name, per] = text.split('/');
  std::optional<Unit> unit = findUnit(name);
  if (!unit || name.size() == text.size())
    return unit;
  std::optional<Unit> time = findTimeUnit(per);
  std::optional<Rational> factor = time ? unit->factor.div(time->factor) : std::nullopt;
  if (!factor)
    return std::nullopt;
  return Unit{"", *factor, *unit->dimension.divide(time->dimension)};
}

/// The number in front of a unit.
static StringRef takeNumber(StringRef text) {
  size_t end = text.find_if_not([](char c) { return llvm::isDigit(c) || c == '.' || c == '_'; });
  StringRef number = text.take_front(end), rest = text.drop_front(number.size());
  if (rest.size() > 1 && llvm::toLower(rest[0]) == 'e') { // `1e9B`, not `1EB`
    size_t sign = rest[1] == '+' || rest[1] == '-';
    StringRef digits = rest.drop_front(1 + sign).take_while(llvm::isDigit);
    if (!digits.empty())
      return text.take_front(number.size() + 1 + sign + digits.size());
  }
  return number;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

static constexpr int8_t Dimension::*const powers[] = {&Dimension::bytes, &Dimension::seconds, &Dimension::operations,
                                                      &Dimension::watts, &Dimension::dollars};

static std::optional<Dimension> combine(const Dimension &a, const Dimension &b, int sign) {
  Dimension result;
  for (int8_t Dimension::*power : powers) {
    int sum = a.*power + sign * b.*power;
    if (std::abs(sum) > 100)
      return std::nullopt;
    result.*power = int8_t(sum);
  }
  return result;
}

std::optional<Dimension> Dimension::multiply(const Dimension &other) const { return combine(*this, other, 1); }
std::optional<Dimension> Dimension::divide(const Dimension &other) const { return combine(*this, other, -1); }

std::string Dimension::describe() const {
  static constexpr std::pair<int8_t Dimension::*, const char *> names[] = {{&Dimension::bytes, "byte"},
                                                                           {&Dimension::operations, "operation"},
                                                                           {&Dimension::watts, "watt"},
                                                                           {&Dimension::dollars, "dollar"},
                                                                           {&Dimension::seconds, "second"}};
  std::string above, below;
  for (auto [power, name] : names) {
    int count = this->*power;
    if (count > 0)
      above += (above.empty() ? "" : " ") + std::string(name) + (count > 1 ? "^" + std::to_string(count) : "s");
    if (count < 0)
      below += " per " + std::string(name) + (count < -1 ? "^" + std::to_string(-count) : "");
  }
  return above.empty() && below.empty() ? "a number" : (above.empty() ? "a number" : above) + below;
}

std::string Dimension::getExample() const {
  static const std::pair<Dimension, const char *> examples[] = {{{.bytes = 1}, "80GiB"},
                                                                {{.seconds = 1}, "2us"},
                                                                {{.operations = 1}, "15GFLOP"},
                                                                {{.watts = 1}, "700W"},
                                                                {{.dollars = 1}, "10USD"},
                                                                {{.bytes = 1, .seconds = -1}, "450GB/s"},
                                                                {{.seconds = -1, .operations = 1}, "989TFLOP/s"},
                                                                {{.seconds = -1, .dollars = 1}, "2.50USD/h"}};
  for (const auto &[dimension, example] : examples)
    if (dimension == *this)
      return example;
  return describe();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::optional<Quantity> stage::parseQuantity(StringRef text) {
  StringRef number = takeNumber(text);
  std::optional<Unit> unit = findWholeUnit(text.drop_front(number.size()));
  std::optional<Rational> count = Rational::read(number);
  std::optional<Rational> value =
      unit && count && number.back() != '.' && number.front() != '.' ? count->mul(unit->factor) : std::nullopt;
  Rational most{__int128(1) << 100, 1};
  if (!value || value->compare(most) > 0)
    return std::nullopt;
  return Quantity{*value, unit->dimension};
}

std::optional<Quantity> stage::parseQuantity(StringRef text, Dimension wanted) {
  std::optional<Quantity> quantity = parseQuantity(text);
  return quantity && quantity->dimension == wanted ? quantity : std::nullopt;
}

/// `1.5`; nothing where more than three digits would stand behind the point.
static std::optional<std::string> printDecimal(const Rational &value) {
  std::optional<Rational> thousands = value.mul({1000, 1});
  if (!thousands || !thousands->isInteger())
    return std::nullopt;
  std::string digits = Rational{thousands->num, 1}.str();
  bool isNegative = llvm::StringRef(digits).startswith("-");
  digits.erase(0, isNegative);
  if (digits.size() < 4)
    digits.insert(0, 4 - digits.size(), '0');
  std::string result = digits.substr(0, digits.size() - 3), fraction = digits.substr(digits.size() - 3);
  while (!fraction.empty() && fraction.back() == '0')
    fraction.pop_back();
  return (isNegative ? "-" : "") + result + (fraction.empty() ? "" : "." + fraction);
}

std::string Quantity::str() const {
  Dimension amount = dimension;
  std::vector<std::pair<std::string, Rational>> candidates;
  std::string per;
  if (dimension == Dimension::ofTime()) {
    for (const Unit &unit : timeUnits)
      candidates.push_back({unit.name, unit.factor});
  } else {
    if (amount.seconds == -1) {
      amount.seconds = 0;
      per = amount == Dimension{.dollars = 1} ? "/h" : "/s";
    }
    for (const Unit &unit : scaledUnits)
      if (unit.dimension == amount && unit.factor.isInteger()) {
        Rational perTime{per == "/h" ? 3600 : 1, 1};
        for (const Prefix &prefix : decimalPrefixes)
          candidates.push_back({prefix.name + std::string(unit.name) + per, *Rational{prefix.factor, 1}.div(perTime)});
        if (amount.bytes)
          for (const Prefix &prefix : binaryPrefixes)
            candidates.push_back({prefix.name + std::string(unit.name) + per, Rational{prefix.factor, 1}});
      }
  }
  std::string best;
  for (const auto &[unit, factor] : candidates)
    if (std::optional<Rational> count = value.div(factor))
      if (std::optional<std::string> text = printDecimal(*count))
        if (std::string whole = *text + unit; best.empty() || whole.size() < best.size())
          best = whole;
  return best.empty() ? value.str() + " " + dimension.describe() : best;
}

std::string stage::suggestQuantity(StringRef text, std::optional<Dimension> wanted) {
  StringRef number = takeNumber(text), unit = text.drop_front(number.size());
  std::string known;
  // Prefix and what follows it, as people write units elsewhere.
  StringRef prefix = unit.take_while([](char c) { return StringRef("kKMGTPEi").contains(c); });
  StringRef rest = unit.drop_front(prefix.size());
  std::string of = (number + prefix).str();
  if (rest == "b" || rest == "b/s")
    known = of + "bit" + rest.drop_front().str() + " for bits, or " + of + "B" + rest.drop_front().str() + " for bytes";
  else if (rest == "bps" || rest == "bits/s" || rest == "bit")
    known = of + "bit/s";
  else if (rest == "Bps")
    known = of + "B/s";
  else if (rest.equals_insensitive("FLOPS") || rest.equals_insensitive("FLOP") || rest.equals_insensitive("FLOPS/s") ||
           rest.equals_insensitive("FLOP/s"))
    known = of + "FLOP/s";
  else if (StringRef plain = llvm::StringSwitch<StringRef>(unit)
                                 .Cases("sec", "second", "seconds", "S", "s")
                                 .Cases("msec", "milliseconds", "ms")
                                 .Cases("usec", "microseconds", "\xc2\xb5s", "us")
                                 .Cases("nsec", "nanoseconds", "ns")
                                 .Cases("m", "minutes", "min")
                                 .Cases("hr", "hours", "H", "h")
                                 .Cases("b", "bytes", "byte", "B")
                                 .Cases("$", "dollars", "USD")
                                 .Default("");
           !plain.empty())
    known = (number + plain).str();
  else if (rest.empty() && wanted && !number.empty()) { // `989T`
    if (*wanted == Dimension::ofTime())
      known = prefix.empty() ? of + "s, " + of + "ms or " + of + "us" : "";
    else if (std::string example = wanted->getExample(); prefix.empty() && number.size() <= 5) // `80` bytes: 80GiB
      known = of + StringRef(example).drop_front(takeNumber(example).size()).str();
    else
      for (const char *base : {"B", "FLOP", "W", "USD", "B/s", "FLOP/s", "USD/h"})
        if (parseQuantity(of + base, *wanted))
          known = of + base;
  }
  std::optional<Quantity> quantity =
      parseQuantity(StringRef(known).take_until([](char c) { return c == ' ' || c == ','; }));
  if (quantity && (!wanted || quantity->dimension == *wanted))
    return known;
  return wanted ? wanted->getExample() : "";
}

std::optional<Rational> stage::readQuantity(StringRef what, StringRef text, Dimension wanted, DiagnosticEngine &diags) {
  if (std::optional<Quantity> quantity = parseQuantity(text, wanted))
    return quantity->value;
  diags.report(SMLoc(), diag::BadQuantity) << what << wanted.describe() << text << suggestQuantity(text, wanted);
  return std::nullopt;
}
