//===- Extends.h - chains of `extends` -------------------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_EXTENDS_H
#define STAGE_LIB_SEMA_EXTENDS_H

#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"

namespace stage::sema {

/// What `decl` extends; null if nothing, or no such declaration of its kind.
template <typename Decl> const Decl *getBase(const Program &program, const Decl &decl) {
  if (!decl.base)
    return nullptr;
  return llvm::dyn_cast_or_null<Decl>(program.lookup(program.getFile(decl), decl.base.name));
}

/// False, and reported, if `decl` extends itself.
template <typename Decl> bool checkExtends(const Program &program, const Decl &decl) {
  std::string chain = decl.name.name.str();
  // A loop that `decl` leads to without being in it is reported for its members.
  llvm::SmallVector<const Decl *, 4> seen;
  for (const Decl *base = getBase(program, decl); base && !llvm::is_contained(seen, base);
       base = getBase(program, *base)) {
    seen.push_back(base);
    chain += (" -> " + base->name.name).str();
    if (base != &decl)
      continue;
    program.getDiags().report(decl.base.loc(), diag::ExtendsItself).range(decl.base.range) << decl.name.name << chain;
    return false;
  }
  return true;
}

/// `decl` and what it extends, the last base first. The chain must have been checked.
template <typename Decl> llvm::SmallVector<const Decl *, 4> getChain(const Program &program, const Decl &decl) {
  llvm::SmallVector<const Decl *, 4> chain;
  for (const Decl *link = &decl; link; link = getBase(program, *link))
    chain.push_back(link);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_EXTENDS_H
