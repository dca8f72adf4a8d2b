//===- Import.cpp - programs from published configurations ----------------===//
#include "stage/Import/Import.h"
#include "ImportTable.h"
#include "Template.h"
#include "stage/Import/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::importer;
using llvm::StringRef;
using llvm::json::Value;

namespace {
class Importer {
public:
  Importer(ConfigFields &fields, const ImportTable &table, const ImportOptions &options, DiagnosticEngine &diags)
      : fields(fields), table(table), options(options), diags(diags) {}

  std::optional<ImportedProgram> run() {
    const Value *type = fields.find("model_type");
    if (!type || !type->getAsString()) {
      diags.report(fields.getPlace("model_type"), diag::NoConfiguration)
          << (type ? "'model_type' is no text" : "there is no 'model_type'");
      return std::nullopt;
    }
    ImportedProgram program;
    program.modelType = type->getAsString()->str();
    program.place = fields.getPlace("model_type");
    if (!table.hasModelType(program.modelType)) {
      reportUnknown(program.modelType);
      return std::nullopt;
    }
    unsigned errors = diags.getNumErrors();
    std::optional<ImportVariant> chosen = table.choose(program.modelType, fields, diags);
    if (!chosen)
      return std::nullopt;
    variant = std::move(*chosen);
    for (const auto &[name, value] : variant.defaults)
      fields.addDefault(name, value);
    checkFields();
    std::vector<Setting> parameters = evaluate(variant.parameters), step = evaluate(variant.step);
    if (diags.getNumErrors() != errors)
      return std::nullopt;
    program.model = variant.model;
    program.isPart = fields.isPart();
    for (const auto &[field, note] : variant.notes)
      if (const Value *value = fields.find(field); value && !saysNothing(*value))
        program.notes.push_back(note + " (" + field + ")");
    for (StringRef name : {"dtype", "torch_dtype"})
      if (const Value *dtype = fields.find(name); dtype && dtype->getAsString())
        program.dtype = dtype->getAsString()->str();
    program.text = write(parameters, step);
    for (const Setting &setting : parameters)
      if (!setting.fields.empty() && llvm::isDigit(setting.value.front()))
        program.parameters += (program.parameters.empty() ? "" : ", ") + setting.name.str() + " = " + setting.value +
                              " (" + setting.fields + ")";
    return program;
  }

private:
  /// A parameter with its value and the fields that this follows from.
  struct Setting {
    StringRef name;
    std::string value, fields;
  };

  void reportUnknown(StringRef modelType) {
    std::vector<std::string> known = table.listModelTypes();
    DiagnosticBuilder error = diags.report(fields.getPlace("model_type"), diag::UnknownModelType)
                              << modelType << llvm::join(known, ", ");
    unsigned most = modelType.size() / 3 + 1;
    const std::string *nearest = nullptr;
    for (const std::string &name : known)
      if (unsigned distance = modelType.edit_distance(name, /*AllowReplacements=*/true, most); distance <= most) {
        nearest = &name;
        most = distance - (distance > 0);
      }
    if (nearest)
      error.note(SMLoc(), diag::NearestModelType) << *nearest;
  }

  //===--- fields that are no parameters --------------------------------------===//

  /// Whether a field stands in a rule, in a condition, or is ignored; by its first name, as `rope_parameters`.
  bool isUnderstood(StringRef field) const {
    auto isIn = [&](const std::vector<ImportRule> &rules) {
      return llvm::any_of(rules, [&](const ImportRule &rule) {
        return llvm::any_of(rule.texts, [&](const std::string &text) {
          return llvm::any_of(Template{text}.listFields(),
                              [&](const std::string &path) { return StringRef(path).split('.').first == field; });
        });
      });
    };
    return isIn(variant.parameters) || isIn(variant.step) || variant.when.get(field) ||
           variant.expects.count(field.str()) || variant.notes.count(field.str()) ||
           llvm::any_of(variant.ignored, [&](StringRef pattern) { return matchesGlob(field, pattern); }) ||
           table.isIgnored(field);
  }

  /// What says that something is not there.
  static bool saysNothing(const Value &value) {
    return value.getAsNull() || value.getAsBoolean() == false || (value.getAsNumber() && *value.getAsNumber() == 0) ||
           (value.getAsString() && value.getAsString()->empty()) ||
           (value.getAsArray() && value.getAsArray()->empty()) || (value.getAsObject() && value.getAsObject()->empty());
  }

  void checkFields() {
    for (const auto &[field, choices] : variant.expects) {
      const Value *value = fields.find(field);
      if (value && !variant.when.get(field) && !llvm::is_contained(options.ignored, field) && !isOneOf(value, choices))
        diags.report(fields.getPlace(field), diag::FieldOfOtherModel)
            << field << fields.describeField(field) << variant.model << describeChoices(choices);
    }
    for (const std::string &field : fields.listNames()) {
      const Value *value = fields.find(field);
      if (value && !saysNothing(*value) && !isUnderstood(field) && !llvm::is_contained(options.ignored, field))
        diags.report(fields.getPlace(field), diag::FieldNotUnderstood) << field;
    }
    for (const std::string &field : options.ignored)
      if (!fields.find(field))
        diags.report(SMLoc(), diag::NothingToIgnore) << field << "the configuration has no such field";
      else if (!variant.expects.count(field) && isUnderstood(field))
        diags.report(fields.getPlace(field), diag::NothingToIgnore) << field << "the library understands it";
  }

  static std::string describeChoices(const llvm::json::Array &choices) {
    std::string text;
    for (const Value &choice : choices) {
      const llvm::json::Object *all = choice.getAsObject();
      text += (text.empty() ? "" : " or ") +
              (all ? "a list of " + ConfigFields::describe(*all->get("all")) : ConfigFields::describe(choice));
    }
    return text.empty() ? "null" : text;
  }

  //===--- the program ----------------------------------------------------------===//

  std::vector<Setting> evaluate(const std::vector<ImportRule> &rules) {
    std::vector<Setting> settings;
    for (const ImportRule &rule : rules) {
      unsigned errors = diags.getNumErrors();
      std::string value;
      const std::string *used = nullptr;
      for (const std::string &text : rule.texts)
        if (value.empty() && diags.getNumErrors() == errors) {
          value = Template{text}.fill(fields, diags);
          used = &text;
        }
      if (!value.empty())
        settings.push_back({rule.name, value, llvm::join(Template{*used}.listFields(), ", ")});
      else if (diags.getNumErrors() == errors && !rule.mayBeAbsent)
        diags.report(fields.getPlace(""), diag::MissingField) << getAbsent(rule) << rule.name << variant.model;
    }
    return settings;
  }

  /// The first field that would give it.
  std::string getAbsent(const ImportRule &rule) const {
    for (const std::string &field : Template{rule.texts.front()}.listFields())
      if (!fields.find(field))
        return field;
    return "";
  }

  std::string write(llvm::ArrayRef<Setting> parameters, llvm::ArrayRef<Setting> step) const {
    size_t nameWidth = 0, valueWidth = 0;
    for (const Setting &setting : parameters) {
      nameWidth = std::max(nameWidth, setting.name.size());
      if (setting.value.size() < maxColumn)
        valueWidth = std::max(valueWidth, setting.value.size());
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "import " << variant.import << " (" << variant.model << ");\n";
    for (const std::string &import : variant.imports)
      os << "import " << import << ";\n";
    os << "import std.parallel (" << StringRef(variant.strategy).split('(').first << ");\n\nconfig published for "
       << variant.model << " {\n";
    for (const Setting &setting : parameters) {
      os << "  " << llvm::left_justify(setting.name, nameWidth) << " = ";
      std::string value = setting.value + ";";
      if (setting.fields.empty())
        os << value << "\n";
      else
        os << llvm::left_justify(value, valueWidth + 1) << "  // " << setting.fields << "\n";
    }
    os << "}\n\njob pretrain {\n  model     = " << variant.model << "(published);\n  step      = train(B = 8";
    std::string longest;
    for (const Setting &setting : step) {
      auto [value, most] = chooseLength(setting.value);
      os << ", " << setting.name << " = " << value;
      if (!most.empty())
        longest += (longest.empty() ? "  // " : ", ") + std::string(setting.name) + " up to " + most;
    }
    os << ", microbatch = 1, optimizer = adamw);" << longest
       << "\n  precision = bf16_mixed;\n  strategy  = " << variant.strategy << ";\n}\n";
    return os.str();
  }

  /// `131_072`, `4Ki`.
  static std::optional<int64_t> readSize(StringRef text) {
    std::string digits = text.trim().str();
    llvm::erase_value(digits, '_');
    StringRef number = digits;
    int64_t size, times = number.consume_back("Ki") ? 1024 : 1;
    return number.getAsInteger(10, size) ? std::nullopt : std::optional<int64_t>(size * times);
  }

  /// Of `min(131_072, 4Ki)` the value, `4096`, and the most that the model takes, where that is more.
  static std::pair<std::string, std::string> chooseLength(StringRef value) {
    StringRef list = value;
    if (!list.consume_front("min(") || !list.consume_back(")"))
      return {value.str(), ""};
    auto [most, usual] = list.split(',');
    std::optional<int64_t> longest = readSize(most), chosen = readSize(usual);
    if (!longest || !chosen)
      return {value.str(), ""};
    return *longest <= *chosen ? std::pair(most.trim().str(), std::string())
                               : std::pair(std::to_string(*chosen), most.trim().str());
  }

  static constexpr size_t maxColumn = 40; ///< Values that are longer push no comments away.
  ConfigFields &fields;
  const ImportTable &table;
  const ImportOptions &options;
  DiagnosticEngine &diags;
  ImportVariant variant;
};
} // namespace

std::optional<ImportedProgram> stage::importer::importConfiguration(unsigned configuration, unsigned table,
                                                                    const ImportOptions &options,
                                                                    DiagnosticEngine &diags) {
  std::optional<ConfigFields> fields = ConfigFields::read(configuration, diags);
  if (!fields)
    return std::nullopt;
  std::optional<ImportTable> known = ImportTable::read(table, options.table, diags);
  return known ? Importer(*fields, *known, options, diags).run() : std::nullopt;
}
