//===- Search.h - the best plans of a job ----------------------*- C++ -*-===//
//
// Problem: these GPUs, this model, this batch: which plan, and why not another?
//
//   Session session(...);
//   std::optional<SearchResult> found = findPlans(session, {.plan = Plan("pretrain")});
//   found->best.front().values           {"8", "4", "16"}: of tp, pp and dp
//
// Algorithm:
//   1. The model is elaborated on one rank, which says what names such as `layers` are, and the space is bound
//      (stage/Sema/Search.h).
//   2. Requirements that ask for values alone are decided for each candidate, as is whether what follows is a whole
//      number.
//   3. What is left is bound: rules and axes of a strategy say how many ranks share a parameter, so that what one rank
//      holds of parameters and optimizer states has a lower bound (Bounds.h). What cannot fit is excluded.
//   4. The others are compiled in several threads, those with the lower bound of time first. Where memory says no, no
//      time is sought. A plan whose bound of time is above the time of as many plans as are wanted is left out, and
//      so are plans that compute the same for a microbatch as one that its bound excludes (SharedBounds.h).
//   5. The neighbours of the best plan, which differ in one value, are compiled where that has not been done. The
//      best plan that was timed of each other strategy is a neighbour, too.
//
// A search may try several strategies, each with a space of its own (stage/Sema/Search.h). The candidates of all
// spaces are numbered one after the other.
//
// All that is counted is a function of the candidates: rounds have the same plans in one thread and in many.
//
// A space that is too large is refused with the time that it would take (Estimate.h), or searched in part.
//
// Limits: bounds are of plans with the batch and the model of the job; where these are searched there are none.
// A search that is limited (`mostPlans`, `seconds`) says so, and its best plan is the best of those compiled.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEARCH_SEARCH_H
#define STAGE_SEARCH_SEARCH_H

#include "stage/Compiler/Session.h"
#include "stage/Report/Comparison.h"
#include "stage/Report/PictureFrame.h"
#include "stage/Sema/Search.h"
#include <atomic>

namespace stage {

/// How far a search is, for people.
struct SearchProgress {
  /// Candidates are decided by values alone, then they are bound, then they are compiled.
  enum class Phase : uint8_t { Decide, Bind, Compile };
  Phase phase = Phase::Decide;
  size_t done = 0, left = 0; ///< Candidates of this phase.
  double seconds = 0;        ///< For those that are left, if they take as long as those before.
  bool isEstimate = false;   ///< The first plans have just been compiled and timed; this is said once.
};
/// `40 s`, `3 h`: rounded, for people.
std::string formatDuration(double seconds);

struct SearchRequest {
  Plan plan;                                            ///< The job, and values that all candidates have.
  std::vector<sema::SearchChange> changes;              ///< Values in place of those of the program.
  size_t top = 5;                                       ///< Plans that are wanted.
  unsigned threads = 0;                                 ///< 0: one per core.
  size_t mostPlans = 0;                                 ///< To compile; 0: all.
  double seconds = 0;                                   ///< After which no plan is begun; 0: no limit.
  bool wantsFront = false;                              ///< A search with one objective is refused.
  bool usesBounds = true;                               ///< False: every candidate that requirements allow is compiled.
  std::function<void(const SearchProgress &)> progress; ///< Called often, by one thread at a time.
  std::atomic<bool> *stop = nullptr;                    ///< Ends the search where it becomes true.
};

/// Shares of a step, of its ranks in the mean over stages: `products`, `exposed all_gather`, `bubble`.
using StepShares = std::vector<std::pair<std::string, Ticks>>;

/// A candidate that was compiled.
struct FoundPlan {
  size_t number = 0;               ///< Of the candidate.
  std::vector<std::string> values; ///< Of SearchResult::names; empty: the strategy has no such name.
  PlanCosts costs;
  StepShares shares;
  std::vector<double> records; ///< By getSearchRecords(); NaN: it has none.
};

/// Why candidates are not among the plans.
struct ExcludedBy {
  std::string rule; ///< As it is shown.
  size_t count = 0;
};

/// A plan that differs from the best one in one value, or the best plan of another strategy.
struct NeighborPlan {
  std::string name, from, to;
  std::optional<FoundPlan> plan; ///< Nothing: it is excluded.
  std::string reason;            ///< Why.
};

/// Of plans that do not fit the one that needs least.
struct NearestMiss {
  std::vector<std::string> values;
  __int128 needs = 0, limit = 0; ///< Bytes.
};

struct SearchResult {
  std::vector<sema::BoundSearch> spaces; ///< Of the strategies that are tried, one or more.
  std::string job;
  std::vector<std::string> names; ///< `strategy` where several are tried, what is searched, and what follows.
  std::vector<bool> varies;       ///< Of names: candidates may differ in its value.
  size_t numCandidates = 0, numCompiled = 0, numFit = 0;
  std::vector<ExcludedBy> excluded; ///< By requirements, then by the compiler.
  size_t numTooLarge = 0;           ///< Of these, those that need too much memory, with and without being compiled.
  size_t numTooSlow = 0;            ///< Left out, because no plan of theirs can be among the best.
  std::optional<NearestMiss> nearest;
  std::vector<FoundPlan> best;                        ///< The best first; of two objectives the front, by the first.
  std::vector<std::pair<double, double>> behindFront; ///< Records of the other plans that were timed.
  std::vector<NeighborPlan> neighbors;
  bool isLimited = false; ///< Not all candidates were decided.
  size_t numUndecided = 0;

  /// Records by which plans are ranked: one, or two of a front.
  llvm::ArrayRef<unsigned> getObjectives() const { return spaces.front().objectives; }
  /// The plan of a candidate.
  Plan getPlan(size_t number) const;
  Plan base; ///< The values that all have.
};

/// Nothing after a report to the session. The program must have been loaded.
std::optional<SearchResult> findPlans(Session &session, const SearchRequest &request);

/// The program of a plan that was found, with one job and no search. Nothing after a report.
std::optional<std::string> writePlan(Session &session, const SearchResult &result, const FoundPlan &plan);

/// The plans, what was excluded, and the neighbours of the first one, for people.
void print(llvm::raw_ostream &os, const SearchResult &result);
/// A line for each of the best plans.
void printCsv(llvm::raw_ostream &os, const SearchResult &result);
/// One JSON object, a value of docs/schema/plans.json.
void printJson(llvm::raw_ostream &os, const SearchResult &result);

/// The front of two objectives as SVG, with the plans behind it. An empty title: the job and its records.
void printFront(llvm::raw_ostream &os, const SearchResult &result, const PictureFrame &frame);

} // namespace stage

#endif // STAGE_SEARCH_SEARCH_H
