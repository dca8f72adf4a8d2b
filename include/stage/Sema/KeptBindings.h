//===- KeptBindings.h - what plan after plan has in common -----*- C++ -*-===//
//
// Problem: the plans of a search differ in a few values. Their machine, their runtime and most of their schedules are
// the same, and would be bound again for each plan.
//
//   plan 1: tp = 4, pp = 8       h100 is evaluated, one_f_one_b is run for 8 stages and 32 microbatches
//   plan 2: tp = 8, pp = 8       both are taken from here
//
// Algorithm: what was bound without a fault is kept by what decides it: the declaration, and the values that the
// command line puts into it. What the evaluation owes and notes (Obligations) is kept with it, and owed and noted
// again.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_KEPTBINDINGS_H
#define STAGE_SEMA_KEPTBINDINGS_H

#include "stage/Sema/BoundMachine.h"
#include "stage/Sema/BoundRuntime.h"
#include "stage/Sema/Schedules.h"
#include <map>

namespace stage::sema {

template <typename Bound> struct Kept {
  Bound bound;
  Obligations obligations;

  /// Owes and notes again what the evaluation did.
  void repeat(Obligations &again) const { sema::repeat(obligations, again); }
};

class KeptBindings {
public:
  /// A declaration, the sizes in which it is evaluated, and the values of the command line for its entries.
  using Key = std::vector<const void *>;
  std::map<Key, Kept<BoundMachine>> machines;
  std::map<Key, Kept<BoundRuntime>> runtimes;
  /// The names of the entries of a machine or a runtime.
  llvm::DenseMap<const ast::Decl *, std::vector<StringRef>> entryNames;

  const Kept<BoundSchedule> *findSchedule(llvm::StringRef key) const {
    auto known = schedules.find(key);
    return known == schedules.end() ? nullptr : &known->second;
  }
  /// Forgets all others where there are too many units.
  const Kept<BoundSchedule> &keepSchedule(llvm::StringRef key, Kept<BoundSchedule> schedule);

private:
  llvm::StringMap<Kept<BoundSchedule>> schedules;
  size_t numUnits = 0;
};

} // namespace stage::sema

#endif // STAGE_SEMA_KEPTBINDINGS_H
