//===- Builtins.cpp - the names every file knows --------------------------===//
#include "stage/Sema/Builtins.h"

using namespace stage::sema;

static const Builtin builtins[] = {
#define BUILTIN(kind, name) {BuiltinKind::kind, #name},
#include "stage/Sema/Builtins.def"
};

llvm::ArrayRef<Builtin> stage::sema::getBuiltins() { return builtins; }

std::optional<BuiltinKind> stage::sema::findBuiltin(llvm::StringRef name) {
  for (const Builtin &builtin : builtins)
    if (builtin.name == name)
      return builtin.kind;
  return std::nullopt;
}

bool stage::sema::isFloatName(llvm::StringRef name) {
  return isDTypeName(name) && (name.startswith("f") || name.startswith("bf"));
}

bool stage::sema::isReduction(llvm::StringRef name) {
  return findBuiltin(name) == BuiltinKind::Reduction || name == "max" || name == "min";
}
