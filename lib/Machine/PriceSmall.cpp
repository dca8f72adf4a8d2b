//===- PriceSmall.cpp - products of few rows, and attention to a cache ----===//
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
// Attention: the same with `cache.attention` of FLOP/s and `cache.efficiency` of memory, for fewer queries than keys
// and than the table's shortest sequence. Bytes are those of the cache, without queries and results. A cache of latent
// vectors is read once for all heads, and has a share of FLOP/s and a floor of its own.
//
// Limits: experts are products with a weight for each, though few tokens read few weights and their kernels take
// longer. A batch of prompts and new tokens is the ops that a unit has, without tiles of rows for each request.
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

std::optional<double> Machine::priceSmallContraction(const Work &work, const TypeRates &type) const {
  if (!hasSmallRates(work))
    return std::nullopt;
  double all = double(work.m) * double(work.batch), rows = work.isGrouped ? double(work.m) : all;
  const Grid *table = type.getContraction(work).table.get();
  if (table && rows >= table->axes[0].front())
    return std::nullopt;
  double flops = std::max(2 * all * double(work.n) * double(work.k), double(work.flops));
  double ticks = addSquares(flops, type.flops, *type.small, double(work.bytes), rates->memory, *rates->smallWeights) +
                 double(getSmallFloor(work, type));
  return table && rows > 0 ? std::min(ticks, priceContraction(work, type, table->axes[0].front() / rows)) : ticks;
}

std::optional<double> Machine::priceCachedAttention(const Work &work, const TypeRates &type) const {
  const Grid *table = type.attention.table.get();
  if (!rates->cacheEfficiency || work.isBackward || work.rows >= work.columns ||
      (table && double(work.rows) >= table->axes[1].front()))
    return std::nullopt;
  Rational share = rates->cacheAttention.value_or(type.attention.share.value_or(defaultAttention));
  Ticks floor = rates->cacheFloor;
  if (work.isLatent) {
    share = rates->latentAttention.value_or(share);
    floor = rates->latentFloor.value_or(floor);
  }
  double size = double(work.headSize) + double(work.valueSize);
  double queries = getBitSize(work.type) / 8.0 * double(work.heads) * double(work.rows) * size; // and results
  return addSquares(2 * double(work.pairs) * size, type.flops, share, std::max(double(work.bytes) - queries, 0.0),
                    rates->memory, *rates->cacheEfficiency) +
         double(floor);
}
