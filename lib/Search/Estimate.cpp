//===- Estimate.cpp - how long a search takes -----------------------------===//
#include "Estimate.h"
#include "stage/Search/Search.h"
#include "stage/Support/Table.h"
#include <chrono>
#include <numeric>

using namespace stage;
using Clock = std::chrono::steady_clock;

static double getSecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Multiples of a number without a common factor with the count meet all numbers; near the golden ratio they are
/// spread.
ScatteredNumbers::ScatteredNumbers(size_t count) : count(count), step(size_t(double(count) * 0.6180339887)) {
  step = std::max<size_t>(step, 1);
  while (std::gcd(step, count) != 1)
    ++step;
}

double stage::estimateSeconds(const Spaces &spaces, size_t count, unsigned threads,
                              llvm::function_ref<void(llvm::ArrayRef<size_t> numbers)> prepare,
                              llvm::function_ref<void(size_t number)> compile) {
  constexpr size_t mostDrawn = 20'000, mostCompiled = 64;
  constexpr double mostSeconds = 2;
  ScatteredNumbers scattered(count);
  std::vector<size_t> allowed;
  std::vector<sema::CandidateValue> slots;
  size_t numDrawn = std::min(count, mostDrawn);
  Clock::time_point begin = Clock::now();
  for (size_t i = 0; i != numDrawn; ++i)
    if (!spaces.findRule(scattered.get(i), slots))
      allowed.push_back(scattered.get(i));
  double perNumber = getSecondsSince(begin) / double(numDrawn);
  double share = double(allowed.size()) / double(numDrawn);
  allowed.resize(std::min(allowed.size(), mostCompiled));
  llvm::sort(allowed);
  prepare(allowed);
  size_t numCompiled = 0;
  begin = Clock::now();
  // Neighbours are alike; so some of all are taken.
  for (size_t i = 0; i != allowed.size() && getSecondsSince(begin) < mostSeconds; ++i, ++numCompiled)
    compile(allowed[ScatteredNumbers(allowed.size()).get(i)]);
  double perCandidate = numCompiled ? getSecondsSince(begin) / double(numCompiled) : 0;
  return double(count) * (perNumber + share * perCandidate / double(std::max(1u, threads)));
}

std::string stage::formatDuration(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour, year = 365 * day;
  struct Unit {
    double size;
    const char *name;
  };
  static constexpr Unit units[] = {{year, "years"}, {day, "days"}, {hour, "h"}, {minute, "min"}};
  for (const Unit &unit : units)
    if (seconds >= 2 * unit.size)
      return formatCount(int64_t(std::min(seconds / unit.size, 1e15))) + " " + unit.name;
  return formatCount(int64_t(seconds + 0.999)) + " s";
}
