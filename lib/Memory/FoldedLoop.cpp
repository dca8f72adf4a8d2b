//===- FoldedLoop.cpp - one iteration for many equal ones -----------------===//
#include "stage/Memory/FoldedLoop.h"
#include <numeric>

using namespace stage;

constexpr unsigned maxCarried = 4;

FoldedLoop::FoldedLoop(const IterationCases &cases, int64_t begin, int64_t end, unsigned numCarried) {
  if (numCarried > maxCarried)
    return;
  if (cases.getRuns().empty())
    fold(begin, end, numCarried);
  for (const IterationCases::Run &run : cases.getRuns())
    fold(std::max(begin, run.begin), std::min(end, run.end), numCarried);
}

/// Leaves out the middle of a run of equal iterations.
void FoldedLoop::fold(int64_t begin, int64_t end, unsigned numCarried) {
  int64_t edge = numCarried + 1, period = 1;
  for (int64_t i = 2; i <= int64_t(numCarried); ++i)
    period = std::lcm(period, i);
  int64_t left = end - begin - 2 * edge - 1;
  if (left < period)
    return;
  gaps.push_back({begin + edge + 1, begin + edge + 1 + left / period * period});
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
  return gap && gap->begin == iteration + 1 ? gap->end - iteration : 1;
}
