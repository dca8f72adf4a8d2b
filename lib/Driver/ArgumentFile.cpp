//===- ArgumentFile.cpp - arguments of a framework, from a file -----------===//
#include "ArgumentFile.h"
#include "stage/Support/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

namespace {
class ArgumentReader {
public:
  ArgumentReader(StringRef text, const sema::Launcher &launcher) : text(text), launcher(launcher) {}

  ArgumentWords read() {
    if (text.ltrim().startswith("{"))
      readJson();
    else if (isCommandLine())
      readCommandLine();
    else
      readLines();
    return std::move(result);
  }

private:
  void add(std::string word, const char *place) {
    result.words.push_back(std::move(word));
    result.places.push_back(llvm::SMLoc::getFromPointer(place));
  }

  /// Some word is a flag, or no line is a section or a key with a value.
  bool isCommandLine() const {
    StringRef rest = text;
    bool hasKeys = false;
    while (!rest.empty()) {
      auto [line, next] = rest.split('\n');
      rest = next;
      line = line.split('#').first.trim();
      if (line.startswith("--") || line.contains(" --"))
        return true;
      StringRef key = takeKey(line);
      StringRef behind = line.drop_front(key.size()).ltrim();
      hasKeys |= line.startswith("[") || (!key.empty() && (behind.startswith(":") || behind.startswith("=")));
    }
    return !hasKeys;
  }
  static StringRef takeKey(StringRef line) {
    return line.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-'; });
  }

  //===--- a command line -----------------------------------------------------===//

  void readCommandLine() {
    bool isCommand = true;
    for (size_t at = 0; at < text.size();) {
      char c = text[at];
      if (llvm::isSpace(c) || (c == '\\' && text.substr(at + 1).ltrim(" \t\r").startswith("\n"))) {
        ++at;
        continue;
      }
      if (c == '#') {
        at = std::min(text.find('\n', at), text.size());
        continue;
      }
      const char *place = text.data() + at;
      std::string word = takeWord(at);
      StringRef key = StringRef(word).split('=').first;
      bool isFlag = StringRef(word).startswith("-") || launcher.hasKey(word);
      bool isSetting = word != key && launcher.hasKey(key);
      // Words of the command, such as `python train.py`, stand in front of its flags, and so may `WORLD_SIZE=64`.
      if (isCommand && !isFlag && !isSetting)
        continue;
      isCommand &= !isFlag;
      if (StringRef(word).endswith(".py") && !isFlag && !isSetting)
        continue; // behind flags of what starts it
      add(std::move(word), place);
    }
  }
  /// As a shell splits words: quotes hold them together.
  std::string takeWord(size_t &at) const {
    std::string word;
    char quote = 0;
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (quote ? c == quote : c == '"' || c == '\'') {
        quote = quote ? 0 : c;
        continue;
      }
      if (!quote && (llvm::isSpace(c) || (c == '\\' && text.substr(at + 1).startswith("\n"))))
        break;
      word += c;
    }
    return word;
  }

  //===--- JSON ---------------------------------------------------------------===//

  void readJson() {
    isJson = true;
    std::optional<llvm::json::Value> value = parseJson(text, result.fault);
    if (!value)
      result.faultPlace = text.data() + std::min(takeJsonPlace(result.fault), text.size());
    else if (size_t at = 0; const llvm::json::Object *object = value->getAsObject())
      addMembers(*object, "", at);
  }

  /// Members in the order of the text; `at`: behind the key that was read last.
  void addMembers(const llvm::json::Object &object, const std::string &prefix, size_t &at) {
    std::vector<std::pair<size_t, const llvm::json::Object::value_type *>> members;
    for (const auto &member : object)
      members.push_back({text.find("\"" + StringRef(member.first).str() + "\"", at), &member});
    llvm::sort(members);
    for (auto [place, member] : members) {
      at = std::min(place, text.size() - 1);
      std::string key = prefix + StringRef(member->first).str();
      const llvm::json::Value &value = member->second;
      if (const llvm::json::Object *inner = value.getAsObject())
        addMembers(*inner, key + ".", at);
      else
        addValue(key, value.getAsString() ? value.getAsString()->str() : llvm::formatv("{0}", value).str(),
                 text.data() + at);
    }
  }

  //===--- keys and values ----------------------------------------------------===//

  void readLines() {
    struct Section {
      size_t indent;
      std::string prefix;
    };
    std::vector<Section> sections;
    StringRef rest = text;
    while (!rest.empty()) {
      auto [line, next] = rest.split('\n');
      rest = next;
      StringRef trimmed = dropComment(line).trim();
      if (trimmed.empty())
        continue;
      size_t indent = size_t(trimmed.data() - line.data());
      if (trimmed.startswith("[")) {
        sections = {{0, trimmed.trim("[]").trim().str() + "."}};
        isTable = true;
        continue;
      }
      while (!isTable && !sections.empty() && sections.back().indent >= indent)
        sections.pop_back();
      std::string prefix;
      for (const Section &section : sections)
        prefix += section.prefix;
      StringRef key = takeKey(trimmed), behind = trimmed.drop_front(key.size()).ltrim();
      if (key.empty() || !(behind.startswith(":") || behind.startswith("="))) {
        add(trimmed.str(), trimmed.data());
        continue;
      }
      StringRef value = behind.drop_front().trim();
      if (value.empty() && behind.startswith(":")) {
        sections.push_back({indent, key.str() + "."});
        continue;
      }
      addValue(prefix + key.str(), unquote(value), trimmed.data());
    }
  }
  static StringRef unquote(StringRef value) {
    bool isQuoted =
        value.size() > 1 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
    return isQuoted ? value.drop_front().drop_back() : value;
  }
  /// A comment begins with `#` outside of quotes.
  static StringRef dropComment(StringRef line) {
    char quote = 0;
    for (size_t at = 0; at < line.size(); ++at) {
      char c = line[at];
      if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else if (!quote && c == '#')
        return line.take_front(at);
    }
    return line;
  }

  void addValue(std::string key, StringRef value, const char *place) {
    std::string dashes = "--" + key;
    std::replace(dashes.begin(), dashes.end(), '_', '-');
    if (!launcher.hasKey(key) && launcher.hasKey("--" + key))
      key = "--" + key;
    else if (!launcher.hasKey(key) && (!isJson || launcher.hasKey(dashes)))
      key = dashes; // what nobody knows is called as it is written in JSON
    if (launcher.isSwitch(key) && (value == "true" || value == "false")) {
      if (value == "true")
        add(key, place);
      return;
    }
    add(key + "=" + value.str(), place);
  }

  StringRef text;
  const sema::Launcher &launcher;
  ArgumentWords result;
  bool isJson = false;
  bool isTable = false; ///< Sections stand in brackets, and indents mean nothing.
};
} // namespace

ArgumentWords stage::driver::readArguments(StringRef text, const sema::Launcher &launcher) {
  return ArgumentReader(text, launcher).read();
}
