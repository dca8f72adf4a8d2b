//===- Extends.h - chains of `extends` -------------------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_EXTENDS_H
#define STAGE_LIB_SEMA_EXTENDS_H

#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace stage::sema {

/// What `decl` extends; null if nothing, or no such declaration of its kind.
template <typename Decl> const Decl *getBase(const Program &program, const Decl &decl) {
  if (!decl.base)
    return nullptr;
  return llvm::dyn_cast_or_null<Decl>(program.lookup(program.getFile(decl), decl.base.name));
}

/// Finds declarations that extend themselves. A long chain is followed once for all that stand in it.
class ExtendsChecker {
public:
  explicit ExtendsChecker(const Program &program) : program(program) {}

  /// False if the chain of `decl` never ends; the loop is reported once.
  template <typename Decl> bool check(const Decl &decl) {
    llvm::SmallVector<const Decl *, 4> chain;
    llvm::SmallPtrSet<const Decl *, 8> seen;
    const Decl *link = &decl;
    for (; link && !ends.count(link) && seen.insert(link).second; link = getBase(program, *link))
      chain.push_back(link);
    auto known = ends.find(link);
    bool good = !link || (known != ends.end() && known->second);
    if (!good && known == ends.end())
      report(*link, llvm::find(chain, link), chain.end());
    for (const Decl *each : chain)
      ends[each] = good;
    return good;
  }

private:
  template <typename Decl, typename Iterator> void report(const Decl &first, Iterator begin, Iterator end) {
    constexpr long maxShown = 20;
    std::string loop;
    for (Iterator it = begin; it != end && it - begin < maxShown; ++it)
      loop += ((*it)->name.name + " -> ").str();
    loop += end - begin > maxShown ? StringRef("...") : first.name.name;
    program.getDiags().report(first.base.loc(), diag::ExtendsItself).range(first.base.range) << first.name.name << loop;
  }

  const Program &program;
  llvm::DenseMap<const ast::Decl *, bool> ends;
};

/// `decl` and what it extends, the last base first. The chain must have been checked.
template <typename Decl> llvm::SmallVector<const Decl *, 4> getChain(const Program &program, const Decl &decl) {
  llvm::SmallVector<const Decl *, 4> chain;
  for (const Decl *link = &decl; link; link = getBase(program, *link))
    chain.push_back(link);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

/// Of these the names that the standard library declares, the nearest first.
template <typename Decl> std::vector<std::string> listLibraryNames(const Program &program, const Decl &decl) {
  std::vector<std::string> names;
  for (const Decl *link = &decl; link; link = getBase(program, *link))
    if (program.isOfLibrary(*link))
      names.push_back(link->name.name.str());
  return names;
}

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_EXTENDS_H
