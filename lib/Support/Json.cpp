//===- Json.cpp - JSON of anybody, safely, and large numbers --------------===//
#include "stage/Support/Json.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <vector>

using namespace stage;
using llvm::StringRef;

namespace {
/// Looks over a text without calling itself. What is no JSON at all is left for the reader to report.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  /// False with a reason if the text is nested too deep or an object has a key twice.
  bool scan(std::string &error) {
    for (at = 0; at < text.size(); ++at) {
      char c = text[at];
      if (c == '{' || c == '[') {
        if (keys.size() == maxJsonDepth) {
          error = "brackets are nested deeper than " + std::to_string(maxJsonDepth);
          return false;
        }
        keys.emplace_back();
      } else if ((c == '}' || c == ']') && !keys.empty()) {
        keys.pop_back();
      } else if (c == '"') {
        StringRef string = skipString();
        // A string before a colon is a key.
        size_t next = text.find_first_not_of(" \t\r\n", at + 1);
        if (next != StringRef::npos && text[next] == ':' && !keys.empty() &&
            !keys.back().insert(decode(string)).second) {
          error = "key " + string.str() + " is given twice";
          return false;
        }
      }
    }
    return true;
  }

private:
  /// The string with its quotes; `at` is then its last character.
  StringRef skipString() {
    size_t begin = at++;
    while (at < text.size() && text[at] != '"')
      at += text[at] == '\\' ? 2 : 1;
    return text.slice(begin, at + 1);
  }

  /// `"\u0031"` and `"1"` are the same key.
  static std::string decode(StringRef string) {
    StringRef inside = string.drop_front().drop_back();
    if (!string.contains('\\'))
      return inside.str();
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(string);
    if (!value)
      llvm::consumeError(value.takeError());
    else if (auto decoded = value->getAsString())
      return decoded->str();
    return inside.str();
  }

  StringRef text;
  size_t at = 0;
  std::vector<llvm::StringSet<>> keys; ///< Of the open brackets.
};
} // namespace

/// Whether the first line names columns, or has their values: `arrived_at,num_prefill_tokens`, `0.0,374`.
static bool isTable(StringRef text) {
  StringRef line = text.split('\n').first;
  return line.contains(',') && line.find_first_of("{}[]") == StringRef::npos && !line.contains("\":") &&
         !line.contains(": ") && llvm::isPrint(text.front());
}

std::string stage::nameOtherFormat(StringRef text) {
  constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> beginnings[] = {
      {"\xEF\xBB\xBF",
       "it begins with a byte order mark (UTF-8), which JSON does not have; remove it, as 'tail -c +4 FILE' does"},
      {"\xFF\xFE", "it is written in UTF-16; write it in UTF-8, as 'iconv -f UTF-16 -t UTF-8 FILE' does"},
      {"\xFE\xFF", "it is written in UTF-16; write it in UTF-8, as 'iconv -f UTF-16 -t UTF-8 FILE' does"},
      {"\x1F\x8B", "it is compressed (gzip); uncompress it, as 'gunzip -c FILE' does"},
      {"\x28\xB5\x2F\xFD", "it is compressed (zstd); uncompress it, as 'zstd -dc FILE' does"},
      {"PK\x03\x04", "it is an archive (zip); take the file out of it, as 'unzip' does"},
      {"PAR1", "it is a table (Parquet); write its rows as JSON"},
  };
  for (auto [beginning, reason] : beginnings)
    if (text.startswith(beginning))
      return reason.str();
  return !text.empty() && isTable(text) ? "it looks like CSV; write an object of JSON for each row" : "";
}

size_t stage::takeJsonPlace(std::string &error) {
  StringRef text = error;
  size_t byte = 0;
  auto [before, after] = text.split("byte=");
  auto [number, rest] = after.split("]: ");
  if (number.getAsInteger(10, byte))
    return 0;
  error = rest == "Expected object key" ? "a key in quotes must stand here, or the comma in front is one too many"
                                        : rest.lower();
  return byte;
}

std::optional<llvm::json::Value> stage::parseJson(StringRef text, std::string &error) {
  if (!Scanner(text).scan(error))
    return std::nullopt;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (value)
    return std::move(*value);
  error = llvm::toString(value.takeError());
  if (std::string other = nameOtherFormat(text); !other.empty())
    error = other;
  return std::nullopt;
}

void stage::writeGiven(llvm::json::OStream &json, StringRef name, StringRef text) {
  std::string digits = text.str();
  llvm::erase_value(digits, '_');
  StringRef number = digits;
  unsigned shift = number.consume_back("Ki") ? 10 : number.consume_back("Mi") ? 20 : number.consume_back("Gi") ? 30 : 0;
  int64_t whole = 0;
  double real = 0;
  constexpr int64_t most = int64_t(1) << 32;
  if (!number.getAsInteger(10, whole) && (!shift || (whole < most && whole > -most)))
    json.attribute(name, whole * (int64_t(1) << shift));
  else if (!shift && number.find_first_not_of("0123456789.-+eE") == StringRef::npos && !number.getAsDouble(real))
    json.attribute(name, real);
  else
    json.attribute(name, text);
}

void stage::writeNumber(llvm::json::OStream &json, StringRef name, __int128 value) {
  json.attributeBegin(name);
  json.rawValue(toDecimal(value));
  json.attributeEnd();
}
