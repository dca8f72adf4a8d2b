//===- Definitions.h - faults of -D ----------------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_DEFINITIONS_H
#define STAGE_LIB_DRIVER_DEFINITIONS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace stage::driver {

/// What stands in quotes in the message that a definition has no value: the definition, and what to write.
std::string describeDefine(llvm::StringRef define);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_DEFINITIONS_H
