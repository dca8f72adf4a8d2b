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

/// The spaces of all strategies that a search tries, one after the other: candidates of the second one have numbers
/// from the count of the first one on. Rules that several spaces have are one.
class Spaces {
public:
  explicit Spaces(llvm::ArrayRef<sema::BoundSearch> searches);

  /// Nothing: too many to count.
  std::optional<size_t> count() const { return total; }
  /// The space of a candidate, and its number there.
  struct Place {
    size_t space;
    size_t number;
  };
  Place locate(size_t number) const;
  size_t getFirst(size_t space) const { return firsts[space]; }
  const Space &get(size_t space) const { return spaces[space]; }
  const sema::BoundSearch &getSearch(size_t space) const { return searches[space]; }

  size_t countRules() const { return rules.size(); }
  std::string describeRule(size_t rule) const;
  /// Of a requirement; none of what follows.
  llvm::SMLoc getLocation(size_t rule) const;
  /// See Space.
  std::optional<size_t> findRule(size_t number, std::vector<sema::CandidateValue> &slots) const;
  std::optional<__int128> findMostMemory(size_t number, llvm::ArrayRef<sema::CandidateValue> slots,
                                         size_t *rule = nullptr) const;
  /// The first requirement about records that does not hold. They are those of sema::getSearchRecords().
  std::optional<size_t> findRuleOfReport(size_t number, llvm::ArrayRef<Rational> records) const;

  /// What plans are described by: `strategy` where several are tried, names that are searched, and those that follow.
  llvm::ArrayRef<std::string> getNames() const { return names; }
  /// The text of each of the names; empty: the strategy of the candidate does not have it.
  std::vector<std::string> describe(size_t number) const;
  /// Candidates may differ in the value of this name.
  bool varies(size_t name) const;

private:
  bool hasStrategies() const { return searches.size() > 1; }
  llvm::ArrayRef<sema::BoundSearch> searches;
  std::vector<Space> spaces;
  std::vector<size_t> firsts; ///< Of each space.
  std::optional<size_t> total;
  std::vector<std::pair<size_t, size_t>> rules; ///< A space that has it, and its number there.
  std::vector<std::vector<size_t>> ruleOfSpace; ///< By the number that a space gives it.
  std::vector<std::string> names;
};

} // namespace stage

#endif // STAGE_LIB_SEARCH_SPACE_H
