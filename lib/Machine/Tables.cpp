//===- Tables.cpp - values between measured points ------------------------===//
#include "Tables.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>

using namespace stage;
using llvm::ArrayRef;

double stage::log2OfOurOwn(double value) {
  double exponent = 0;
  for (; value > 1.5; value *= 0.5)
    exponent += 1;
  for (; value < 0.75; value *= 2)
    exponent -= 1;
  // ln(v) = 2 (s + s^3/3 + s^5/5 + ...), s = (v-1)/(v+1), which is at most 0.2: the term s^25/25 is below 2^-63.
  double s = (value - 1) / (value + 1), square = s * s, sum = 0;
  for (int power = 25; power >= 1; power -= 2)
    sum = sum * square + 1.0 / power;
  constexpr double twoOverLn2 = 2.885390081777926814719849362;
  return exponent + twoOverLn2 * s * sum;
}

size_t stage::findNearest(ArrayRef<double> axis, double value) {
  size_t best = 0;
  for (size_t i = 1; i < axis.size(); ++i)
    if (std::max(axis[i] - value, value - axis[i]) <= std::max(axis[best] - value, value - axis[best]))
      best = i;
  return best;
}

namespace {
/// Between which two points of an axis a value lies, and how far from the first one.
struct Place {
  size_t first = 0;
  double part = 0; ///< 0: at the first point.
};
} // namespace

static Place findPlace(ArrayRef<double> axis, double value, llvm::function_ref<double(double)> scale) {
  if (value <= axis.front())
    return {0, 0};
  if (value >= axis.back())
    return {axis.size() - 1, 0};
  size_t first = size_t(std::upper_bound(axis.begin(), axis.end(), value) - axis.begin()) - 1;
  double begin = scale(axis[first]), end = scale(axis[first + 1]);
  return {first, (scale(value) - begin) / (end - begin)};
}

/// Linear on each axis from the given ones on. `position`: of a value, in all axes before.
static double interpolateFrom(const Grid &grid, ArrayRef<Place> places, size_t axis, size_t position) {
  if (axis == grid.axes.size())
    return grid.values[position];
  const Place &place = places[axis];
  position = position * grid.axes[axis].size() + place.first;
  double first = interpolateFrom(grid, places, axis + 1, position);
  if (place.part == 0)
    return first;
  return first + place.part * (interpolateFrom(grid, places, axis + 1, position + 1) - first);
}

double stage::interpolate(const Grid &grid, ArrayRef<size_t> fixed, ArrayRef<double> point) {
  llvm::SmallVector<Place, 4> places;
  for (size_t position : fixed)
    places.push_back({position, 0});
  for (double value : point)
    places.push_back(findPlace(grid.axes[places.size()], value, log2OfOurOwn));
  return interpolateFrom(grid, places, 0, 0);
}

bool stage::contains(const Grid &grid, ArrayRef<double> point) {
  return llvm::all_of(llvm::zip(grid.axes, point), [](const auto &each) {
    const auto &[axis, value] = each;
    return value >= axis.front() && value <= axis.back();
  });
}

double stage::interpolateCollective(const Grid &grid, double ranks, double bytes) {
  const std::vector<double> &sizes = grid.axes[1];
  size_t nearest = findNearest(grid.axes[0], ranks);
  Place place = findPlace(sizes, bytes, [](double value) { return value; });
  double time = interpolateFrom(grid, {Place{nearest, 0}, place}, 0, 0);
  if (bytes > sizes.back())
    time = time * (bytes / sizes.back());
  double measured = grid.axes[0][nearest];
  return measured == ranks ? time : time * ((ranks - 1) / ranks) / ((measured - 1) / measured);
}
