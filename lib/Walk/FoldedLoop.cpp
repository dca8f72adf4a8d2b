//===- FoldedLoop.cpp - one iteration for many equal ones -----------------===//
#include "stage/Walk/FoldedLoop.h"
#include <numeric>

using namespace stage;

constexpr unsigned maxCarried = 4;
constexpr size_t maxRunsOfRound = 16;

FoldedLoop::FoldedLoop(const IterationCases &cases, int64_t begin, int64_t end, unsigned numCarried, unsigned prefetch)
    : numCarried(numCarried), roundsBelow(int64_t(numCarried) + prefetch + 2),
      roundsAbove(int64_t(numCarried) + prefetch + 1) {
  foldRuns(cases, begin, end);
}

FoldedLoop FoldedLoop::makeOfReads(const IterationCases &cases, int64_t begin, int64_t end, unsigned numCarried,
                                   bool isReverse) {
  FoldedLoop loop;
  loop.numCarried = numCarried;
  loop.roundsBelow = loop.roundsAbove = 1; // a walk asks neither for the first iteration nor behind the last one
  (isReverse ? loop.roundsAbove : loop.roundsBelow) = std::max(numCarried, 1u);
  loop.foldRuns(cases, begin, end);
  return loop;
}

void FoldedLoop::foldRuns(const IterationCases &cases, int64_t begin, int64_t end) {
  if (numCarried > maxCarried)
    return;
  if (cases.getRuns().empty())
    fold(begin, end, /*round=*/1);
  std::vector<IterationCases::Run> runs;
  for (const IterationCases::Run &run : cases.getRuns())
    if (std::max(begin, run.begin) < std::min(end, run.end))
      runs.push_back({run.number, std::max(begin, run.begin), std::min(end, run.end)});
  for (size_t first = 0; first < runs.size();)
    first = foldRounds(runs, first);
}

/// Folds the rounds of cases that begin with a run, or else the run. Gives the first run that is not among them.
size_t FoldedLoop::foldRounds(llvm::ArrayRef<IterationCases::Run> runs, size_t first) {
  auto isLike = [&](size_t a, size_t b) {
    return runs[a].number == runs[b].number && runs[a].end - runs[a].begin == runs[b].end - runs[b].begin;
  };
  for (size_t runsOfRound = 2; runsOfRound <= maxRunsOfRound && first + runsOfRound < runs.size(); ++runsOfRound) {
    size_t last = first + runsOfRound;
    while (last < runs.size() && isLike(last, last - runsOfRound))
      ++last;
    if (fold(runs[first].begin, runs[last - 1].end, runs[first + runsOfRound].begin - runs[first].begin))
      return last;
  }
  fold(runs[first].begin, runs[first].end, /*round=*/1);
  return first + 1;
}

/// Leaves out the middle of equal rounds of iterations; false if they are too few.
bool FoldedLoop::fold(int64_t begin, int64_t end, int64_t round) {
  int64_t period = 1;
  for (int64_t i = 2; i <= int64_t(numCarried); ++i)
    period = std::lcm(period, i);
  int64_t left = (end - begin) / round - roundsBelow - roundsAbove;
  if (left < period)
    return false;
  int64_t gap = begin + roundsBelow * round;
  gaps.push_back({gap, gap + left / period * period * round, round, period});
  return true;
}

const FoldedLoop::Gap *FoldedLoop::findGap(int64_t iteration) const {
  auto it = llvm::partition_point(gaps, [&](const Gap &gap) { return gap.end <= iteration; });
  return it == gaps.end() ? nullptr : &*it;
}

int64_t FoldedLoop::getNext(int64_t iteration, int64_t step) const {
  int64_t next = iteration + step;
  const Gap *gap = findGap(next);
  if (!gap || next < gap->begin)
    return next;
  return step > 0 ? gap->end : gap->begin - 1;
}

int64_t FoldedLoop::getCopies(int64_t iteration) const {
  const Gap *gap = findGap(iteration);
  return gap && gap->begin - gap->round <= iteration ? 1 + (gap->end - gap->begin) / gap->round : 1;
}
