//===- Template.h - texts with fields of a configuration in braces *- C++ -*-===//
#ifndef STAGE_LIB_IMPORT_TEMPLATE_H
#define STAGE_LIB_IMPORT_TEMPLATE_H

#include "ConfigFields.h"

namespace stage::importer {

/// `{partial_rotary_factor:real} * {head_dim}`: a text in which fields stand. What stands behind the colon is what the
/// field must be, and how it is written in the program.
///
///   (nothing)    a size, an integer that is at least 1: 14_336
///   number       one that may be 0
///   layers       a number of layers
///   real         a number: 5.0e5
///   bool         true or false
///   count        as many as the list or the object has entries
///   every=WORD   a list of texts, one per layer, in which every n-th is WORD and no other: n; with none one more than
///                there are layers
///   list         a list of texts: ["a", "b"]
///   letters      a text as a list of its letters
struct Template {
  llvm::StringRef text;

  /// The fields that stand in it, by their paths, in order.
  std::vector<std::string> listFields() const;
  /// The text with the values of the fields. Empty: a field is absent, or is not what it must be, which is reported.
  std::string fill(const ConfigFields &fields, DiagnosticEngine &diags) const;
};

} // namespace stage::importer

#endif // STAGE_LIB_IMPORT_TEMPLATE_H
