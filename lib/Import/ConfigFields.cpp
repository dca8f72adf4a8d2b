//===- ConfigFields.cpp - the fields of a configuration -------------------===//
//
// Files come from Python, whose JSON has the words Infinity and NaN. These become texts of the same length before the
// reader of JSON sees them, so that a field which must be a number refuses them, all others do not mind, and every
// place stays the same.
//
//===----------------------------------------------------------------------===//
#include "ConfigFields.h"
#include "stage/Import/Diagnostics.h"
#include "stage/Support/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace stage;
using namespace stage::importer;
using llvm::StringRef;

/// Behind the end of the string that begins at `at`.
static size_t skipString(StringRef text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\')
      ++at;
  return at + 1;
}

static std::string quoteWords(StringRef text) {
  std::string result = text.str();
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      at = skipString(text, at) - 1;
      continue;
    }
    for (StringRef word : {"-Infinity", "Infinity", "NaN"})
      if (text.substr(at).startswith(word)) {
        std::fill(result.begin() + at, result.begin() + at + word.size(), '~');
        result[at] = result[at + word.size() - 1] = '"';
        at += word.size() - 1;
        break;
      }
  }
  return result;
}

std::optional<ConfigFields> ConfigFields::read(unsigned buffer, DiagnosticEngine &diags) {
  StringRef text = diags.getSources().getMemoryBuffer(buffer)->getBuffer();
  auto getPlace = [&](size_t byte) { return SMLoc::getFromPointer(text.data() + std::min(byte, text.size())); };
  std::string error;
  std::optional<llvm::json::Value> value = parseJson(quoteWords(text), error);
  if (!value || !value->getAsObject()) {
    size_t byte = value ? 0 : takeJsonPlace(error);
    diags.report(getPlace(byte), diag::NoConfiguration)
        << (value                                           ? "this is no object"
            : text.contains(" --") || text.startswith("--") ? "these are arguments, which 'stagec import "
                                                              "--launcher=NAME args.txt' reads; 'stagec doc' lists "
                                                              "the launchers"
                                                            : error);
    return std::nullopt;
  }
  ConfigFields fields(std::move(*value), getPlace(text.find('{')));
  fields.locate(text);
  return fields;
}

/// Finds where the names of fields stand, without calling itself: the text is known to be JSON.
void ConfigFields::locate(StringRef text) {
  struct Open {
    std::string path; ///< With a point behind it.
    std::string key;  ///< Of the value that is read now.
  };
  std::vector<Open> open;
  constexpr size_t maxDepth = 4; // deeper ones are asked for by nobody
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '{' || c == '[') {
      std::string path = open.empty() ? "" : open.back().path + open.back().key + (open.back().key.empty() ? "" : ".");
      open.push_back({c == '{' ? path : path + "[].", ""});
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == '"') {
      size_t end = skipString(text, at);
      size_t next = text.find_first_not_of(" \t\r\n", end);
      if (next != StringRef::npos && text[next] == ':' && !open.empty() && open.size() <= maxDepth) {
        open.back().key = text.slice(at + 1, end - 1).str();
        places.try_emplace(open.back().path + open.back().key, SMLoc::getFromPointer(text.data() + at));
      }
      at = end - 1;
    }
  }
}

const llvm::json::Object &ConfigFields::getObject() const {
  const llvm::json::Object *inner = root.getAsObject()->getObject("text_config");
  return inner ? *inner : *root.getAsObject();
}

/// Follows a path from an object.
static const llvm::json::Value *follow(const llvm::json::Object *object, StringRef path) {
  const llvm::json::Value *value = nullptr;
  while (object && !path.empty()) {
    auto [name, rest] = path.split('.');
    value = object->get(name);
    path = rest;
    object = value ? value->getAsObject() : nullptr;
    if (!object && !path.empty())
      return nullptr;
  }
  return value && value->getAsNull() ? nullptr : value;
}

const llvm::json::Value *ConfigFields::find(StringRef path) const {
  if (const llvm::json::Value *value = follow(&getObject(), path))
    return value;
  // null in the part itself says that there is none.
  bool isSaid = getObject().get(path.split('.').first);
  if (const llvm::json::Value *value = isSaid ? nullptr : follow(root.getAsObject(), path))
    return value;
  auto it = defaults.find(path);
  return isSaid || it == defaults.end() ? nullptr : &it->second;
}

SMLoc ConfigFields::getPlace(StringRef path) const {
  for (StringRef prefix : {"text_config.", ""})
    if (auto it = places.find((prefix + path).str()); it != places.end())
      return it->second;
  return begin;
}

std::string ConfigFields::describe(const llvm::json::Value &value) {
  std::string text = llvm::formatv("{0}", value).str();
  constexpr size_t most = 60;
  return text.size() <= most ? text : llvm::json::fixUTF8(StringRef(text).take_front(most)) + "...";
}

std::string ConfigFields::describeField(StringRef path) const {
  const llvm::json::Value &value = *find(path);
  if (!value.getAsNumber() && !value.getAsString())
    return describe(value);
  SMLoc place = getPlace(path);
  // Behind the key, whose text is known to be followed by a colon and a value; a default stands nowhere.
  StringRef text = place.getPointer();
  if (place == begin)
    return describe(value);
  text = text.drop_front(text.find(':', skipString(text, 0)) + 1).ltrim();
  size_t end = text.startswith("\"") ? skipString(text, 0) : text.find_first_of(",}] \t\r\n");
  return text.take_front(end).str();
}

std::vector<std::string> ConfigFields::listNames() const {
  std::vector<std::string> names;
  for (const auto &[name, value] : getObject())
    names.push_back(StringRef(name).str());
  llvm::sort(names);
  return names;
}
