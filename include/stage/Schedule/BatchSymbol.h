//===- BatchSymbol.h - which batch a unit of inference has -----*- C++ -*-===//
#ifndef STAGE_SCHEDULE_BATCHSYMBOL_H
#define STAGE_SCHEDULE_BATCHSYMBOL_H

#include "llvm/ADT/StringRef.h"

namespace stage {

/// The symbol that units of inference bind to the number of their batch of sequences, whose caches they go on with.
constexpr llvm::StringLiteral batchSymbol = "g";

} // namespace stage

#endif // STAGE_SCHEDULE_BATCHSYMBOL_H
