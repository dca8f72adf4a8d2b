//===- DocPages.h - the library as pages -----------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_DOCPAGES_H
#define STAGE_LIB_DRIVER_DOCPAGES_H

#include "DocText.h"
#include "stage/Support/Diagnostics.h"

namespace stage::driver {

struct DocCommand;

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

/// A page of Markdown: `parallel.md`, and what is in it.
struct DocPage {
  std::string name, text;
};
/// A page for each module, a page of flags, and an index.
std::vector<DocPage> makePages(llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all);
/// Writes these into a folder. False after reporting why that was not possible.
bool writePages(const DocCommand &command, llvm::ArrayRef<DocPage> pages, DiagnosticEngine &diags);
/// Writes a site of the documentation, in which `library` are the pages of docs/library. False after errors.
bool writeSite(const DocCommand &command, llvm::ArrayRef<DocPage> library, DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_DOCPAGES_H
