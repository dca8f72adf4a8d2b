//===- PriceSmall.cpp - products of few rows, experts, and attention of servers ---===//
//
// Problem: an iteration that decodes multiplies few rows, and attends from one new token of each sequence to a long
// cache. Tables of kernels begin above such shapes, and hold what a benchmark pays for each launch.
//
//   h100, 8 x 4096 by 4096 x 4096 in bf16               by the table's border 17.4 us, here 14.8 us
//   h100, 8 new tokens, 8 key heads, 4096 positions     by the table's border 77.2 us, here 54.1 us
//
// Rule. Product: sqrt(a^2 + b^2) + floor. a: FLOPs / (`small.contraction` of FLOP/s), b: bytes, as they are stored, /
// (`small.weights` of memory). A kernel overlaps both in part only, so that the root of squares fits measured
// iterations, and the larger of both is too short. It holds for fewer rows than the table has, and without a table for
// all. A product never takes longer than one of the table's fewest rows, so that more rows are never cheaper. Several
// products with a weight for each are one kernel, as those of heads with latent vectors.
//
// Experts: the same with `experts.contraction`, `experts.weights` and a floor of their own. Of T tokens that each
// choose K of X experts at random, (1 - K/X)^T of the experts get none, and their weights are not read. FLOPs are those
// of the tokens' choices.
//
//   one token, 8 of 128 experts: 8 are read; 16 tokens: 82.4; 64 tokens: 125.9
//
// Attention to a cache: the same with `cache.attention` of FLOP/s and `cache.efficiency` of memory, for fewer queries
// than keys and than the table's shortest sequence. Bytes are those of the cache, without queries and results. A cache
// of latent vectors is read once for all heads, and has a share of FLOP/s and a floor of its own.
//
// Prompts beside sequences that decode: what both take is added, each with its floor. A kernel that computes tiles of
// rows of each sequence and head (Work::tiledPairs) is one for all: the larger of the FLOPs of its tiles and the bytes
// of the cache, and a floor. A new token then costs the FLOPs of a tile.
//
//===----------------------------------------------------------------------===//
#include "RateMath.h"
#include "stage/Machine/Machine.h"
#include <algorithm>
#include <cmath>

using namespace stage;

/// In ticks. `flopShare`, `memoryShare`: the parts of the rates that are reached.
static double addSquares(double flops, Rate flopRate, const Rational &flopShare, double bytes, Rate memory,
                         const Rational &memoryShare) {
  double compute = RateMath::divide(flops, flopRate) / flopShare.toDouble();
  double streaming = RateMath::divide(bytes, memory) / memoryShare.toDouble();
  return std::sqrt(compute * compute + streaming * streaming);
}

/// f16 and bf16 stand for each other.
Ticks Machine::getSmallFloor(const Work &work, const TypeRates &type) const {
  if (type.smallFloor || (work.type != DType::F16 && work.type != DType::BF16))
    return type.smallFloor.value_or(0);
  return rates->types[size_t(work.type == DType::F16 ? DType::BF16 : DType::F16)].smallFloor.value_or(0);
}

bool Machine::hasSmallRates(const Work &work) const {
  return isDeclared() && rates->smallWeights && getType(work).small;
}

bool Machine::hasExpertRates(const Work &work, const TypeRates &type) const {
  return isDeclared() && rates->expertWeights && type.experts && work.isGrouped && work.experts > 0;
}

/// Parts of a whole to the power of a count, on any machine the same.
static double raise(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2)
      power *= base;
  return power;
}

double Machine::priceExperts(const Work &work, const TypeRates &type) const {
  double experts = double(work.experts), here = double(work.batch), chosen = double(work.choices) / experts;
  double weights = here * (1 - raise(1 - chosen, work.tokens)) * double(work.n) * double(work.k);
  double flops = 2 * double(work.tokens) * chosen * here * double(work.n) * double(work.k);
  return addSquares(flops, type.flops, *type.experts, getBitSize(work.type) / 8.0 * weights, rates->memory,
                    *rates->expertWeights) +
         double(rates->expertFloor);
}

std::optional<double> Machine::priceSmallContraction(const Work &work, const TypeRates &type) const {
  bool isOfExperts = hasExpertRates(work, type);
  if (!isOfExperts && !hasSmallRates(work))
    return std::nullopt;
  double all = double(work.m) * double(work.batch), rows = work.isGrouped ? double(work.m) : all;
  const Grid *table = type.getContraction(work).table.get();
  if (table && rows >= table->axes[0].front())
    return std::nullopt;
  if (isOfExperts)
    return priceExperts(work, type);
  double flops = std::max(2 * all * double(work.n) * double(work.k), double(work.flops));
  double ticks = addSquares(flops, type.flops, *type.small, double(work.bytes), rates->memory, *rates->smallWeights) +
                 double(getSmallFloor(work, type));
  return table && rows > 0 ? std::min(ticks, priceContraction(work, type, table->axes[0].front() / rows)) : ticks;
}

bool Machine::isOfServer(const Work &work) const {
  const Grid *table = getType(work).attention.table.get();
  bool hasFewRows = work.rows < work.columns && !(table && double(work.rows) >= table->axes[1].front());
  return isDeclared() && rates->cacheEfficiency && work.kind == WorkKind::Attention && !work.isBackward &&
         (hasFewRows || work.isPacked || work.tiledPairs);
}

std::optional<double> Machine::priceCachedAttention(const Work &work, const TypeRates &type) const {
  if (!isOfServer(work))
    return std::nullopt;
  Rational share = rates->cacheAttention.value_or(type.attention.share.value_or(defaultAttention));
  Ticks floor = rates->cacheFloor;
  if (work.isLatent) {
    share = rates->latentAttention.value_or(share);
    floor = rates->latentFloor.value_or(floor);
  }
  double size = double(work.headSize) + double(work.valueSize);
  double queries = getBitSize(work.type) / 8.0 * double(work.heads) * double(work.rows) * size; // and results
  double bytes = std::max(double(work.bytes) - queries, 0.0);
  auto compute = [&](double pairs) { return RateMath::divide(2 * pairs * size, type.flops) / share.toDouble(); };
  auto read = [&](double bytes) { return RateMath::divide(bytes, rates->memory) / rates->cacheEfficiency->toDouble(); };
  if (work.tiledPairs)
    return std::max(compute(double(work.tiledPairs)), read(bytes)) + double(floor);
  double promptTicks = 0, decoding = double(work.pairs - work.promptPairs);
  if (work.promptPairs > 0) {
    // One that decodes reads a position for each pair of a head.
    double positions = std::min(decoding / double(work.heads), double(work.columns));
    double decodeBytes = bytes * positions / double(work.columns);
    promptTicks = std::max(compute(double(work.promptPairs)), read(bytes - decodeBytes)) +
                  double(rates->promptFloor.value_or(floor));
    bytes = decodeBytes;
    if (decoding <= 0)
      return promptTicks;
  }
  return promptTicks + double(floor) +
         addSquares(2 * decoding * size, type.flops, share, bytes, rates->memory, *rates->cacheEfficiency);
}
