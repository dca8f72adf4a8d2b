//===- Builtins.h - the names every file knows -----------------*- C++ -*-===//
#ifndef STAGE_SEMA_BUILTINS_H
#define STAGE_SEMA_BUILTINS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace stage::sema {

enum class BuiltinKind {
  ElementFunction,
  Reduction,
  SizeFunction,
  ListFunction,
  DType,
  ModelQuery,
  Word,
  WordFunction,
  PhaseQuery,
  CacheFunction
};

struct Builtin {
  BuiltinKind kind;
  llvm::StringRef name;
};
/// All of Builtins.def.
llvm::ArrayRef<Builtin> getBuiltins();
/// Nothing if no builtin has this name.
std::optional<BuiltinKind> findBuiltin(llvm::StringRef name);
inline bool isDTypeName(llvm::StringRef name) { return findBuiltin(name) == BuiltinKind::DType; }
/// Kind of a parameter of a part: axes of the strategy that calls it.
constexpr llvm::StringLiteral axesKind = "axes";
/// `f32`, `bf16` and their like.
bool isFloatName(llvm::StringRef name);
/// `sum`, `mean`, and `max` and `min`, which are element functions without brackets.
bool isReduction(llvm::StringRef name);

} // namespace stage::sema

#endif // STAGE_SEMA_BUILTINS_H
