//===- ImportTable.h - what fields mean to models of the library *- C++ -*-===//
#ifndef STAGE_LIB_IMPORT_IMPORTTABLE_H
#define STAGE_LIB_IMPORT_IMPORTTABLE_H

#include "ConfigFields.h"
#include <map>
#include <vector>

namespace stage::importer {

/// A parameter of a model, or a dim of a step, and the texts from which it follows: the first one whose fields are all
/// there. `mayBeAbsent`: the model has a value of its own.
struct ImportRule {
  std::string name;
  std::vector<std::string> texts;
  bool mayBeAbsent = false;
};

/// A model of the library for some configurations of a model_type, with all that it takes over from others.
struct ImportVariant {
  std::string import, model;
  std::vector<std::string> imports; ///< Of what values name: "std.moe (SoftmaxRouter)".
  std::string strategy = "megatron(pp = 1, dp = 1, cp = 1, tp = 1)"; ///< Of std.parallel, of the job.
  llvm::json::Object when;
  std::vector<ImportRule> parameters, step; ///< In the order of the table.
  std::map<std::string, llvm::json::Array> expects;
  std::vector<std::string> ignored;
  std::map<std::string, std::string> notes; ///< What is said of the program if the field is there.
  std::map<std::string, llvm::json::Value> defaults;
};

class ImportTable {
public:
  /// Nothing after a report. `path` is for messages.
  static std::optional<ImportTable> read(unsigned buffer, llvm::StringRef path, DiagnosticEngine &diags);

  std::vector<std::string> listModelTypes() const;
  bool hasModelType(llvm::StringRef modelType) const { return models.getArray(modelType); }
  /// The first variant whose conditions hold. Nothing after a report.
  std::optional<ImportVariant> choose(llvm::StringRef modelType, const ConfigFields &fields,
                                      DiagnosticEngine &diags) const;
  /// Whether a field changes no size of any model.
  bool isIgnored(llvm::StringRef field) const;

private:
  explicit ImportTable(llvm::StringRef path) : path(path.str()) {}
  std::optional<ImportVariant> resolve(const llvm::json::Object &entry, unsigned depth, std::string &fault) const;
  const llvm::json::Object *findLike(llvm::StringRef modelType) const;

  std::string path;
  llvm::json::Object models;
  std::vector<std::string> ignored;
};

/// Whether a value is one of those of a condition: equal, absent where that has null, or a list of equal ones, {"all":
/// word}.
bool isOneOf(const llvm::json::Value *value, const llvm::json::Array &choices);
/// `*` stands for any characters.
bool matchesGlob(llvm::StringRef name, llvm::StringRef pattern);

} // namespace stage::importer

#endif // STAGE_LIB_IMPORT_IMPORTTABLE_H
