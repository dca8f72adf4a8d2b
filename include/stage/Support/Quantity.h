//===- Quantity.h - rates and times as text --------------------*- C++ -*-===//
#ifndef STAGE_SUPPORT_QUANTITY_H
#define STAGE_SUPPORT_QUANTITY_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace stage {

/// Reads a rate or a time, `989e12`, `3.35T` or `450G`, as so many of which `unit` make one: a whole number, at least
/// `least`.
std::optional<uint64_t> parseQuantity(llvm::StringRef text, uint64_t unit = 1, uint64_t least = 1);

} // namespace stage

#endif // STAGE_SUPPORT_QUANTITY_H
