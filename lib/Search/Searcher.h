//===- Searcher.h - a search while it runs ---------------------*- C++ -*-===//
//
// What is known of each candidate, and the steps of stage/Search/Search.h in their order:
//
//   Search.cpp          the space: which candidates values alone leave over
//   CompilePlans.cpp    candidates are bound, compiled and timed
//   RankPlans.cpp       the best ones, their neighbours, and why the others are none
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEARCH_SEARCHER_H
#define STAGE_LIB_SEARCH_SEARCHER_H

#include "Bounds.h"
#include "Progress.h"
#include "Space.h"
#include "stage/Search/Search.h"
#include "stage/Search/SharedBounds.h"
#include <chrono>
#include <thread>

namespace stage {

/// Of a candidate.
enum class CandidateState : uint8_t {
  Unbound,
  Waiting,  ///< It was bound, and may be compiled.
  Refused,  ///< By the compiler.
  TooLarge, ///< Its bound of memory says so, or memory that was accounted.
  Fits,     ///< It was compiled, and has no time yet.
  TooSlow,  ///< Its bound of time.
  Excluded, ///< By a requirement about its report.
  Found,
};

/// What is known of one so far.
struct Candidate {
  size_t number = 0;
  CandidateState state = CandidateState::Unbound;
  bool isExact = false; ///< `memory` was accounted.
  __int128 memory = 0;  ///< Bytes: a bound, or exact.
  __int128 limit = 0;   ///< Bytes; 0: none.
  double time = 0;      ///< Ticks: a bound, of the compiled program where it fits.
  size_t rule = 0;      ///< Of a candidate that a requirement excludes.
  std::string refusal;  ///< The code, and the text up to its numbers.
  std::shared_ptr<const FoundPlan> plan;

  /// It was neither compiled nor excluded.
  bool isOpen() const {
    return state == CandidateState::Unbound || state == CandidateState::Waiting || state == CandidateState::Fits;
  }
};

class Searcher {
public:
  Searcher(Session &session, const SearchRequest &request) : session(session), request(request) {}

  bool run();
  SearchResult result;

private:
  bool bindSpace();
  bool filter();
  bool reportTooLarge(std::optional<size_t> count);
  Candidate makeCandidate(size_t number, llvm::ArrayRef<sema::CandidateValue> slots) const;
  void bindAll(SessionThreads &threads);
  void findReferences();
  llvm::ArrayRef<Candidate> listCandidates(size_t space) const;
  std::vector<Candidate *> orderWaiting();
  void compileAll(SessionThreads &threads);
  void timeBest(SessionThreads &threads, llvm::ArrayRef<Candidate *> fitting);
  void findNearest(SessionThreads &threads);
  void rank();
  void findNeighbors(SessionThreads &threads);
  void addOtherStrategies();
  bool checkRecords();
  void count();
  std::string describeExample(size_t rule) const;
  bool reportNothing();

  void bind(Session &own, Candidate &candidate) const;
  /// How far a candidate is compiled.
  enum class Depth : uint8_t { Memory, Bound, Time };
  /// `shared`: of candidates with much in common, those before it. False: one of them excludes it, and no pass has run.
  bool compile(Session &own, Candidate &candidate, Depth depth = Depth::Time, SharedBounds *shared = nullptr) const;
  /// No plan of this bound is among the best of those that were timed.
  bool isTooSlow(double time) const { return best.size() >= request.top && time > best[request.top - 1]; }
  bool isRankedByTime() const;
  /// Whether the first plan is before the second one.
  bool isBetter(const FoundPlan &a, const FoundPlan &b) const;
  double getRecord(const FoundPlan &plan, unsigned objective) const {
    unsigned record = result.getObjectives()[objective];
    double value = plan.records[record];
    return sema::getSearchRecords()[record].isMost ? -value : value;
  }
  bool isFront() const { return result.getObjectives().size() > 1; }
  /// `share`: of the seconds that the search may take.
  bool isStopped(double share = 1) const {
    return (request.stop && *request.stop) ||
           (request.seconds > 0 &&
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > request.seconds * share);
  }
  unsigned countThreads() const {
    return request.threads ? request.threads : std::max(1u, std::thread::hardware_concurrency());
  }

  Session &session;
  const SearchRequest &request;
  SMLoc jobPlace;
  std::optional<Spaces> spaces;
  std::vector<size_t> numByRule;
  std::vector<Candidate> candidates;
  std::vector<std::optional<ModelCosts>> models; ///< By strategy; nothing: none of its plans compiles.
  bool usesBounds = false;
  std::vector<double> best; ///< Ticks of the best plans that were timed, ascending.
  ProgressMeter meter{request.progress};
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace stage

#endif // STAGE_LIB_SEARCH_SEARCHER_H
