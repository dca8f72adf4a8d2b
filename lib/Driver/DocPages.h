//===- DocPages.h - the library as pages -----------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_DOCPAGES_H
#define STAGE_LIB_DRIVER_DOCPAGES_H

#include "DocText.h"

namespace stage::driver {

/// A file of the library: `std.nn`.
struct DocModule {
  std::string name;
  const ast::File *file;
};

/// The page of a module, `parallel.md` of `std.parallel`.
std::string getPageName(llvm::StringRef module);
/// A cell of a table: one line, in which a bar ends no column.
std::string makeCell(const std::string &text);

/// Declarations by the task for which they are.
std::string makeTaskIndex(llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all);
/// From arguments of frameworks to parameters of strategies.
std::string makeFlagPage(llvm::ArrayRef<DocEntry> all);

/// Writes a page for each module, an index, and a page of flags into a folder. False after reporting why that was not
/// possible.
bool writePages(llvm::StringRef folder, llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all,
                DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_DOCPAGES_H
