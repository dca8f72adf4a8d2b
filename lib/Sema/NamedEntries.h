//===- NamedEntries.h - entries of machines and runtimes -------*- C++ -*-===//
//
// Problem: a machine or a runtime has the entries of its base, its own, and those of the command line. Which value of
// an entry counts, in which file are its names looked up, and how does a message name it?
//
//   runtime eager { launch = 12us; }  runtime fused extends eager { launch = 8us; }  -D runtime.launch=5us
//
//   launch: 5us, of the command line; described as `fused with launch = 5us`
//
// Rule: entries are collected by their whole names, `rail.rate`, the last base first, so that later ones replace
// earlier ones, and the command line replaces last.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_NAMEDENTRIES_H
#define STAGE_LIB_SEMA_NAMEDENTRIES_H

#include "stage/Sema/EntryOverride.h"
#include "stage/Sema/Evaluator.h"
#include <map>

namespace stage::sema {

struct NamedEntry {
  const ast::Expr *value;
  const ast::File *file; ///< Null: the command line.
};
using NamedEntries = std::map<std::string, NamedEntry>;

/// Puts the values of the command line in place of entries of these names. Returns each, `launch = 5us`.
std::vector<std::string> replaceEntries(NamedEntries &entries, llvm::ArrayRef<std::string> names,
                                        EntryOverride override);

struct EntryValue {
  CTValue value;
  std::optional<Rational> exact; ///< In base units. Nothing: it is no exact number.
};
/// Evaluates an entry in the file that says it, or in `env` if the command line does. Without a dimension it must be a
/// plain number to be exact. Nothing after a report.
std::optional<EntryValue> evaluateEntry(Evaluator &evaluator, llvm::StringRef name, const NamedEntry &entry,
                                        std::optional<Dimension> dimension, const Environment &env);

/// `fused with launch = 5us, tax.send = 0.1`.
std::string describeChanges(llvm::StringRef name, llvm::ArrayRef<std::string> changes);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_NAMEDENTRIES_H
