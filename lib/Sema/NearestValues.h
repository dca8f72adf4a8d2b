//===- NearestValues.h - values with which a requirement holds -*- C++ -*-===//
//
// Problem: "16 query heads do not share 6 key/value heads evenly" leaves the number to be found.
//
// Example: with H = 16 and KV = 6, `H % KV == 0` holds with KV = 4, KV = 8, H = 12 or H = 18.
//
// Algorithm: each number of the condition that the user wrote is counted down and up, the others as they are, until
// the condition holds. Numbers right of a `%` come first. Conditions are made of whole numbers, names and operators.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_NEARESTVALUES_H
#define STAGE_LIB_SEMA_NEARESTVALUES_H

#include "stage/AST/AST.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace stage::sema {

/// `KV = 4, KV = 8, H = 12 or H = 18`; empty: no number of the user alone makes the condition hold, or it is made of
/// other things than whole numbers. `lookup`: the number that a name stands for. `isOfUser`: whether the user wrote it.
std::string listValuesThatHold(const ast::Expr *condition,
                               llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup,
                               llvm::function_ref<bool(llvm::StringRef)> isOfUser);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_NEARESTVALUES_H
