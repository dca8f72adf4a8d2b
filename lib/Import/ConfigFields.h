//===- ConfigFields.h - the fields of a configuration ----------*- C++ -*-===//
#ifndef STAGE_LIB_IMPORT_CONFIGFIELDS_H
#define STAGE_LIB_IMPORT_CONFIGFIELDS_H

#include "stage/Support/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace stage::importer {

/// A configuration as it was read. A model of several parts has the one that reads text in `text_config`: then its
/// fields are meant, and those around it where it lacks one.
class ConfigFields {
public:
  /// Nothing after a report.
  static std::optional<ConfigFields> read(unsigned buffer, DiagnosticEngine &diags);

  /// The value of a field, `rope_parameters.rope_theta` of one in another; null: there is none, or it is null.
  const llvm::json::Value *find(llvm::StringRef path) const;
  /// Where the name of a field stands; the beginning of the configuration for one that is absent.
  SMLoc getPlace(llvm::StringRef path) const;
  /// A value for a message, cut where it is long; that of a field as it is written.
  static std::string describe(const llvm::json::Value &value);
  std::string describeField(llvm::StringRef path) const;
  /// Whether these are the fields of a part.
  bool isPart() const { return &getObject() != root.getAsObject(); }
  /// The fields that are meant, sorted.
  std::vector<std::string> listNames() const;
  /// What a field is from now on where it is absent.
  void addDefault(llvm::StringRef name, const llvm::json::Value &value) { defaults.try_emplace(name, value); }

private:
  ConfigFields(llvm::json::Value value, SMLoc begin) : root(std::move(value)), begin(begin) {}
  void locate(llvm::StringRef text);
  const llvm::json::Object &getObject() const;

  llvm::json::Value root;
  SMLoc begin;
  llvm::StringMap<SMLoc> places; ///< By path from the root.
  llvm::StringMap<llvm::json::Value> defaults;
};

} // namespace stage::importer

#endif // STAGE_LIB_IMPORT_CONFIGFIELDS_H
