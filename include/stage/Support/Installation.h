//===- Installation.h - where this compiler is installed -------*- C++ -*-===//
#ifndef STAGE_SUPPORT_INSTALLATION_H
#define STAGE_SUPPORT_INSTALLATION_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace stage {

/// `0.1.0`.
llvm::StringRef getVersion();

/// Names this build of the compiler: two builds of different code have different names. Empty if the linker gave none.
llvm::StringRef getBuildId();

/// The folder that holds the standard library's `std/...`, found relative to the running executable, links resolved.
/// `argv0` helps where the system does not tell an executable's path. The folder need not exist: whoever opens a
/// file in it says what is missing.
std::string getStdlibFolder(const char *argv0);

} // namespace stage

#endif // STAGE_SUPPORT_INSTALLATION_H
