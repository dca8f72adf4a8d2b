//===- Template.cpp - texts with fields of a configuration in braces ------===//
#include "Template.h"
#include "stage/Import/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace stage;
using namespace stage::importer;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Value;

/// 14336 as 14_336, as the library writes sizes.
static std::string writeInteger(int64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() > 4)
    for (size_t at = digits.size() - 3; at > 0 && at < digits.size(); at -= std::min<size_t>(at, 3))
      digits.insert(at, "_");
  return digits;
}

/// The shortest number that reads as the same double.
static std::string writeReal(double number) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*e", digits, number);
    if (std::strtod(text.c_str(), nullptr) == number)
      break;
  }
  auto [fraction, exponent] = StringRef(text).split('e');
  int power = 0;
  exponent.consume_front("+");
  (void)exponent.getAsInteger(10, power);
  constexpr int longest = 4; // numbers of a few digits are written out
  if (power >= -2 && power <= longest) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*f", 17, number);
    for (int digits = 1; digits <= 17; ++digits) {
      std::string shorter;
      llvm::raw_string_ostream(shorter) << llvm::format("%.*f", digits, number);
      if (std::strtod(shorter.c_str(), nullptr) == number)
        return shorter;
    }
  }
  return (fraction + "e" + llvm::Twine(power)).str();
}

/// A text that can stand between quotes of a program.
static bool isPlain(StringRef text) {
  return llvm::all_of(text, [](char c) { return llvm::isPrint(c) && c != '"' && c != '\\'; });
}

static std::string writeList(llvm::ArrayRef<StringRef> texts) {
  std::string result;
  for (StringRef text : texts)
    result += (result.empty() ? "[\"" : ", \"") + text.str() + "\"";
  return texts.empty() ? "" : result + "]";
}

namespace {
/// What a field must be, in words, where it is not; else `text` is how it is written.
struct Written {
  std::string text;
  std::string expected;
};
} // namespace

static Written writeEvery(const Array &list, StringRef word) {
  size_t step = list.size() + 1;
  for (size_t i = 0; i < list.size() && step > list.size(); ++i)
    if (list[i].getAsString() == word)
      step = i + 1;
  for (size_t i = 0; i < list.size(); ++i)
    if ((list[i].getAsString() == word) != (i % step == step - 1))
      return {"", ("a list in which every n-th is \"" + word + "\", and no other").str()};
  return {writeInteger(step), ""};
}

static Written write(const Value &value, StringRef kind) {
  const Array *list = value.getAsArray();
  auto writeBetween = [&](int64_t least, int64_t most, const char *what) {
    auto number = value.getAsInteger();
    return number && *number >= least && *number <= most ? Written{writeInteger(*number), ""} : Written{"", what};
  };
  if (kind.empty())
    return writeBetween(1, int64_t(1) << 40, "a size, at least 1 and at most 2^40");
  if (kind == "number")
    return writeBetween(0, int64_t(1) << 40, "a number, at least 0 and at most 2^40");
  if (kind == "layers") // each may be of another kind
    return writeBetween(1, 10'000, "a number of layers, at least 1 and at most 10000");
  if (kind == "real") {
    auto number = value.getAsNumber();
    return number && std::isfinite(*number) ? Written{writeReal(*number), ""} : Written{"", "a number"};
  }
  if (kind == "bool") {
    auto truth = value.getAsBoolean();
    return truth ? Written{*truth ? "true" : "false", ""} : Written{"", "true or false"};
  }
  if (kind == "count") {
    size_t count = list ? list->size() : value.getAsObject() ? value.getAsObject()->size() : 0;
    return count ? Written{writeInteger(count), ""} : Written{"", "a list with entries"};
  }
  if (kind.consume_front("every="))
    return list && !list->empty() ? writeEvery(*list, kind) : Written{"", "a list, one text per layer"};
  if (kind != "letters" && kind != "list")
    return {"", ("of kind '" + kind + "', which nothing explains").str()};
  std::vector<StringRef> texts;
  if (kind == "letters") {
    StringRef text = value.getAsString().getValueOr("");
    for (size_t i = 0; i < text.size(); ++i)
      texts.push_back(text.substr(i, 1));
  } else if (list) {
    for (const Value &element : *list)
      texts.push_back(element.getAsString().getValueOr("\""));
  }
  bool good = !texts.empty() && llvm::all_of(texts, isPlain);
  return good ? Written{writeList(texts), ""} : Written{"", kind == "letters" ? "a text" : "a list of texts"};
}

std::vector<std::string> Template::listFields() const {
  std::vector<std::string> result;
  for (StringRef rest = text.split('{').second; !rest.empty(); rest = rest.split('{').second)
    result.push_back(rest.split('}').first.split(':').first.str());
  return result;
}

std::string Template::fill(const ConfigFields &fields, DiagnosticEngine &diags) const {
  std::string result;
  bool good = true;
  for (const std::string &field : listFields())
    if (!fields.find(field))
      return "";
  for (StringRef rest = text; !rest.empty();) {
    auto [before, behind] = rest.split('{');
    result += before;
    if (before.size() == rest.size())
      break;
    auto [place, after] = behind.split('}');
    auto [field, kind] = place.split(':');
    const Value &value = *fields.find(field);
    Written written = write(value, kind);
    // A list that is not of all layers contradicts their number.
    const Value *layers = fields.find("num_hidden_layers");
    bool isOfLayers = kind.startswith("every=") || kind == "list" || kind == "letters";
    size_t length = value.getAsArray() ? value.getAsArray()->size() : value.getAsString().getValueOr("").size();
    if (isOfLayers && layers && layers->getAsInteger() != int64_t(length) && written.expected.empty())
      written.expected = "as long as there are layers (num_hidden_layers), " + ConfigFields::describe(*layers);
    if (!written.expected.empty()) {
      diags.report(fields.getPlace(field), diag::BadField) << field << written.expected << fields.describeField(field);
      good = false;
    }
    result += written.text;
    rest = after;
  }
  return good ? result : "";
}
