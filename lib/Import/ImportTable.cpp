//===- ImportTable.cpp - what fields mean to models of the library --------===//
//
// What the file may say stands at its top: stdlib/huggingface.json.
//
//===----------------------------------------------------------------------===//
#include "ImportTable.h"
#include "stage/Import/Diagnostics.h"
#include "stage/Support/Json.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;
using namespace stage::importer;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

bool stage::importer::matchesGlob(StringRef name, StringRef pattern) {
  auto [head, rest] = pattern.split('*');
  if (head.size() == pattern.size())
    return name == pattern;
  if (!name.consume_front(head))
    return false;
  // The shortest match of what is left leaves most for what follows.
  for (;; name = name.drop_front()) {
    if (matchesGlob(name, rest))
      return true;
    if (name.empty())
      return false;
  }
}

bool stage::importer::isOneOf(const Value *value, const Array &choices) {
  return llvm::any_of(choices, [&](const Value &choice) {
    if (choice.getAsNull() || !value)
      return choice.getAsNull() && !value;
    const Object *list = choice.getAsObject();
    const Array *elements = value->getAsArray();
    if (list && elements)
      return llvm::all_of(*elements, [&](const Value &element) { return element == *list->get("all"); });
    // A list as the choice is several lists with an order; numbers are equal as numbers.
    return choice == *value || (choice.getAsNumber() && choice.getAsNumber() == value->getAsNumber());
  });
}

/// The texts of a list; false if there is something else.
static bool readTexts(const Value &value, std::vector<std::string> &texts, bool *mayBeAbsent = nullptr) {
  if (auto text = value.getAsString()) {
    texts.push_back(text->str());
    return true;
  }
  const Array *list = value.getAsArray();
  return list && llvm::all_of(*list, [&](const Value &element) {
           if (element.getAsNull() && mayBeAbsent)
             return *mayBeAbsent = true;
           return !element.getAsArray() && readTexts(element, texts);
         });
}

/// Rules of an object, into those of a variant that is like it: in their place, or behind them; null takes one away.
/// The reader of JSON keeps no order: that of names, but for models' usual one.
static bool readRules(const Object &object, std::vector<ImportRule> &rules) {
  // As the library's models have their parameters.
  static constexpr StringRef order[] = {"N", "L",  "D", "H",  "KV", "QL", "KL", "E",
                                        "R", "EV", "F", "FM", "FS", "V",  "T"};
  auto getPlace = [&](StringRef name) { return llvm::find(order, name) - std::begin(order); };
  std::vector<StringRef> names;
  for (const auto &[name, value] : object)
    names.push_back(name);
  for (StringRef name : names) {
    const Value &value = *object.get(name);
    llvm::erase_if(rules, [&](const ImportRule &rule) { return rule.name == name; });
    if (value.getAsNull())
      continue;
    ImportRule rule{name.str(), {}};
    if (!readTexts(value, rule.texts, &rule.mayBeAbsent) || rule.texts.empty())
      return false;
    rules.push_back(std::move(rule));
  }
  llvm::sort(rules, [&](const ImportRule &a, const ImportRule &b) {
    return std::pair(getPlace(a.name), StringRef(a.name)) < std::pair(getPlace(b.name), StringRef(b.name));
  });
  return true;
}

/// Fields to values that they may have; null takes a field away.
static bool readChoices(const Object &object, std::map<std::string, Array> &choices) {
  for (const auto &[name, value] : object) {
    choices.erase(StringRef(name).str());
    const Array *list = value.getAsArray();
    if (!list && !value.getAsNull())
      return false;
    for (const Value &choice : list ? *list : Array())
      if (const Object *all = choice.getAsObject(); all && !all->get("all"))
        return false;
    if (list)
      choices.emplace(StringRef(name).str(), *list);
  }
  return true;
}

std::optional<ImportTable> ImportTable::read(unsigned buffer, StringRef path, DiagnosticEngine &diags) {
  ImportTable table(path);
  std::string error;
  std::optional<Value> value = parseJson(diags.getSources().getMemoryBuffer(buffer)->getBuffer(), error);
  const Object *object = value ? value->getAsObject() : nullptr;
  const Value *ignored = object ? object->get("ignored") : nullptr;
  const Object *models = object ? object->getObject("models") : nullptr;
  if (!models || !ignored || !readTexts(*ignored, table.ignored)) {
    diags.report(SMLoc(), diag::BadImportTable) << path << (value ? "'models' and 'ignored' are expected" : error);
    return std::nullopt;
  }
  table.models = *models;
  return table;
}

std::vector<std::string> ImportTable::listModelTypes() const {
  std::vector<std::string> names;
  for (const auto &[name, value] : models)
    names.push_back(StringRef(name).str());
  llvm::sort(names);
  return names;
}

bool ImportTable::isIgnored(StringRef field) const {
  return llvm::any_of(ignored, [&](StringRef pattern) { return matchesGlob(field, pattern); });
}

/// What 'like' means: the variant that is like no other, or else the first.
const Object *ImportTable::findLike(StringRef modelType) const {
  const Array *variants = models.getArray(modelType);
  if (!variants || variants->empty())
    return nullptr;
  for (const Value &variant : *variants)
    if (const Object *object = variant.getAsObject(); object && !object->get("like"))
      return object;
  return variants->front().getAsObject();
}

std::optional<ImportVariant> ImportTable::resolve(const Object &entry, unsigned depth, std::string &fault) const {
  constexpr unsigned maxDepth = 10;
  ImportVariant variant;
  if (auto like = entry.getString("like")) {
    const Object *other = findLike(*like);
    std::optional<ImportVariant> base = other && depth < maxDepth ? resolve(*other, depth + 1, fault) : std::nullopt;
    if (!base) {
      if (fault.empty())
        fault = ("nothing can be like '" + *like + "'").str();
      return std::nullopt;
    }
    variant = std::move(*base);
  }
  variant.when = entry.getObject("when") ? *entry.getObject("when") : Object();
  variant.import = entry.getString("import").getValueOr(variant.import).str();
  variant.model = entry.getString("model").getValueOr(variant.model).str();
  variant.strategy = entry.getString("strategy").getValueOr(variant.strategy).str();
  const Object none;
  auto get = [&](StringRef name) -> const Object & { return entry.getObject(name) ? *entry.getObject(name) : none; };
  bool good = !variant.import.empty() && !variant.model.empty() && readRules(get("parameters"), variant.parameters) &&
              readRules(get("step"), variant.step) && readChoices(get("expects"), variant.expects);
  if (const Value *imports = entry.get("imports"))
    good &= readTexts(*imports, variant.imports);
  if (const Value *ignored = entry.get("ignored"))
    good &= readTexts(*ignored, variant.ignored);
  for (const auto &[name, value] : get("defaults"))
    variant.defaults.insert_or_assign(StringRef(name).str(), value);
  for (const auto &[name, value] : get("notes")) {
    good &= value.getAsString().hasValue();
    variant.notes[StringRef(name).str()] = value.getAsString().getValueOr("").str();
  }
  for (const auto &[name, value] : variant.when)
    good &= value.getAsArray() != nullptr;
  if (good)
    return variant;
  fault = "variant of '" + variant.model + "' is broken";
  return std::nullopt;
}

std::optional<ImportVariant> ImportTable::choose(StringRef modelType, const ConfigFields &fields,
                                                 DiagnosticEngine &diags) const {
  std::string fault;
  for (const Value &entry : *models.getArray(modelType)) {
    const Object *object = entry.getAsObject();
    std::optional<ImportVariant> variant = object ? resolve(*object, 0, fault) : std::nullopt;
    if (!variant)
      break;
    bool holds = llvm::all_of(variant->when, [&](const auto &condition) {
      return isOneOf(fields.find(condition.first), *condition.second.getAsArray());
    });
    if (holds)
      return variant;
  }
  if (fault.empty())
    fault = ("no variant of '" + modelType + "' is without conditions").str();
  diags.report(SMLoc(), diag::BadImportTable) << path << fault;
  return std::nullopt;
}
