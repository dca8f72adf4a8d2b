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

/// Writes a page for each module, and an index, into a folder. False after reporting why that was not possible.
bool writePages(llvm::StringRef folder, llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all,
                DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_DOCPAGES_H
