//===- Installation.cpp - where this compiler is installed ----------------===//
#include "stage/Support/Installation.h"
#include "stage/Support/Config.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace stage;

llvm::StringRef stage::getVersion() { return STAGE_VERSION; }

std::string stage::getStdlibFolder(const char *argv0) {
  // Any function of the executable will do to find it.
  void *here = reinterpret_cast<void *>(&getStdlibFolder);
  llvm::SmallString<256> folder(llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(argv0, here)));
  llvm::sys::path::append(folder, STAGE_STDLIB_FROM_BINARY);
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}
