//===- Space.h - the candidates of a search --------------------*- C++ -*-===//
//
// A candidate is a number: its values are the digits, of the last name those that change fastest.
//
//   tp in [1, 2], pp in [1, 2, 4]      candidate 4: tp = 2, pp = 2
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEARCH_SPACE_H
#define STAGE_LIB_SEARCH_SPACE_H

#include "stage/Sema/Search.h"

namespace stage {

class Space {
public:
  explicit Space(const sema::BoundSearch &search) : search(search) {}

  /// Nothing: too many to count.
  std::optional<size_t> count() const;
  /// The numbers of its values among those of each name.
  std::vector<size_t> decode(size_t number) const;
  size_t encode(llvm::ArrayRef<size_t> digits) const;

  /// Rules by which candidates are excluded before they are bound: what follows, then requirements.
  size_t countRules() const { return search.following.size() + search.requirements.size(); }
  std::string describeRule(size_t rule) const;
  /// The first rule that excludes a candidate; nothing: none does. `slots`: as many as the search has; values that
  /// follow are put there.
  std::optional<size_t> findRule(size_t number, llvm::MutableArrayRef<sema::CandidateValue> slots) const;
  /// The bytes of a rank that its requirements allow, of a candidate whose slots were filled; nothing: any.
  std::optional<__int128> findMostMemory(llvm::ArrayRef<sema::CandidateValue> slots, size_t *rule = nullptr) const;
  /// The texts of the values, and of what follows.
  std::vector<std::string> describe(size_t number) const;

private:
  const sema::BoundSearch &search;
};

} // namespace stage

#endif // STAGE_LIB_SEARCH_SPACE_H
