//===- SizeSearch.h - small values under requirements ----------*- C++ -*-===//
//
// Problem: find small values for symbols such that all requirements hold, and as many relations (Relations.h) as can
// be.
//
// Algorithm: symbols that no requirement or relation ties together are looked at apart. Those of one group are bound
// one after the other, each next to those that it shares most with, to 2, 3, ... with backtracking; a predicate is
// tried as soon as all its symbols have values. Sizes beyond 64 are tried where a predicate compares a symbol with them
// (`x[128..S]`). Sizes that another symbol has come later, so that two dims that a pass confuses are told apart. First
// with no dim smaller than 2, as a dim of size 1 hides what is done along it; then with. Where the search ends without
// an answer, each size of the job is made as small as the others allow, until none gets smaller: the job's own sizes
// satisfy what it requires.
//
// Relations: first all together. If that fails, requirements alone, and then one relation after the other: what the
// values have anyway, or a search under all that are kept so far finds, is kept; another one is lost.
//
// Limits: the search is bounded; what it gives is small, not always smallest, and a relation may be lost that a longer
// search would keep.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_SIZESEARCH_H
#define STAGE_LIB_INTERP_SIZESEARCH_H

#include "Relations.h"
#include "llvm/ADT/StringMap.h"
#include <set>

namespace stage::interp {

/// Something that must hold of the sizes that are found.
struct Requirement {
  enum class Kind {
    Owed,  ///< an obligation of the program
    Split, ///< `size` is a multiple of `parts`, and at least what is asked of dims just now
    Whole, ///< `size` is an integer
    Kept,  ///< a relation of the job, which may be lost
  };
  Kind kind;
  Size size;
  Obligations::Obligation owed{};
  int64_t parts = 1;
  std::string over; ///< The axes of a split, for the message.
  const Relation *relation = nullptr;
  std::vector<unsigned> symbols = {}; ///< Numbers of those to be found.
  uint64_t failures = 0;

  bool holds(const SizeBinding &binding, int64_t least) const;
  std::string describe() const;
  llvm::SmallVector<Size, 2> getSizes() const;
};

class SizeSearch {
public:
  /// `given`: the values of the job. `binding` has all that is not searched for.
  /// A value that no other symbol has may be larger by `apart` than one that another has.
  SizeSearch(const SizeBinding &given, SizeBinding binding, llvm::ArrayRef<std::string> symbols,
             std::vector<Requirement> requirements, int64_t apart);

  /// The binding with values for all symbols; nothing if there are none: then what could not be satisfied most often is
  /// in `obstacle`.
  std::optional<SizeBinding> run(std::string &obstacle);

private:
  bool solve(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests, llvm::ArrayRef<unsigned> relations);
  bool findValues(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests, int64_t attempts);
  void keepOneByOne(llvm::ArrayRef<unsigned> group, std::vector<unsigned> tests, llvm::ArrayRef<unsigned> relations);
  void arrange(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests);
  std::vector<int64_t> listCandidates(unsigned position) const;
  bool assign(unsigned position);
  bool check(llvm::ArrayRef<unsigned> tests);
  void lower(llvm::ArrayRef<unsigned> tests);
  bool descend(llvm::ArrayRef<unsigned> tests);
  std::vector<int64_t> takeBack(llvm::ArrayRef<unsigned> group);
  void adopt(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<int64_t> values);

  const SizeBinding &given;
  SizeBinding binding;
  std::vector<std::string> symbols;
  std::vector<Requirement> requirements;
  std::multiset<int64_t> taken;

  // Of the group that is being solved.
  std::vector<unsigned> order;
  std::vector<std::vector<unsigned>> due; ///< Requirements that can be tried once the symbol of this position is bound.
  int64_t least = 2, budget = 0, apart;
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_SIZESEARCH_H
