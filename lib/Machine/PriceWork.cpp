//===- PriceWork.cpp - what products, attention and other ops take --------===//
//
// Problem: a device reaches another part of its peak with each shape.
//
//   h100: 8192 x 8192 by 8192 x 8192 in bf16     roof 1.11 ms + 2 us, ratio 1.24, sustained 0.87: 1.59 ms
//   h100: 64 x 512 by 512 x 512                  roof 2.2 us, ratio 1.5, sustained 0.87: 3.7 us
//
// Rule. Contraction: roof = max(2 m n k / FLOPs, bytes / memory) + 2 us, times a ratio, divided by `sustained`. The
// ratio is the table's, or 1 over the part of the roof that is reached. Bytes are those of both operands in their type,
// and of a result of 2 bytes an element, or more if the operands have more; what a task writes beyond them is added at
// the rate of streaming kernels. A batch with one weight for all is a product with more rows, but never faster than its
// bytes; with a weight for each it is as many products. FLOPs beyond those of the shape take as long, each, as these.
//
// Attention: roof = max(2 pairs (head size + value size) / FLOPs, bytes / memory) + 2 us, times a ratio by the length
// of keys and the number of heads, from the nearest head size of the table. Backward is a multiple. Softmax takes as
// long in 8 bits as in 16, so that half the time of products is not half the time of attention: where a machine says
// nothing of attention in 8 bits, FLOPs and ratio are those of bf16.
//
// All else takes its bytes at the rate of streaming kernels, but no less than its FLOPs outside of tensor cores, and no
// less than a kernel takes. Where a runtime says what a kernel takes besides, that is added instead.
//
// Products of fewer rows than the table has, and attention of few rows to a cache, are priced by PriceSmall.cpp where a
// machine says what they reach.
//
// Limits: operands of integers count as floating point of their width. Scales of quantized operands are no bytes of the
// roof.
//
//===----------------------------------------------------------------------===//
#include "RateMath.h"
#include "Tables.h"
#include "stage/Machine/Machine.h"
#include <algorithm>

using namespace stage;

/// A kernel's own time in a roof.
static constexpr double launchTicks = 2'000'000;
/// The part of the roof where a machine says nothing: of the peaks of A100, H100 and B200, products of training reach
/// 0.46 to 0.76.
static constexpr Rational defaultContraction{3, 5};

/// In which rates an op on such operands counts.
static size_t findTypeIndex(const Work &work) {
  switch (work.type) {
  case DType::F32:
    return work.allowsTF32 ? tf32Index : size_t(DType::F32);
  case DType::F16:
  case DType::BF16:
  case DType::F8:
  case DType::F4:
    return size_t(work.type);
  case DType::U8:
  case DType::I8:
    return size_t(DType::F8);
  case DType::I4:
    return size_t(DType::F4);
  case DType::I32:
  case DType::I64:
    return size_t(DType::F32);
  }
  llvm_unreachable("no other types");
}

const TypeRates &Machine::getType(const Work &work) const { return rates->types[findTypeIndex(work)]; }

/// Those of bf16 for operands of fewer bits: shares of attention to a cache are those of kernels of 16 bits.
static const TypeRates &getWideType(const MachineRates &rates, const Work &work, const TypeRates &type) {
  const TypeRates &wide = rates.types[size_t(DType::BF16)];
  return getBitSize(work.type) < 16 && wide.flops ? wide : type;
}

/// Those of attention; of bf16, if nothing is said of attention on operands of fewer bits.
static const TypeRates &getAttentionType(const MachineRates &rates, const Work &work, const TypeRates &type) {
  return type.attention.isSaid() ? type : getWideType(rates, work, type);
}

static double getRatio(const OpRatio &ratio, const Rational &orElse) {
  return 1 / ratio.share.value_or(orElse).toDouble();
}

/// `times`: with so many times as many rows.
double Machine::priceContraction(const Work &work, const TypeRates &type, double times) const {
  bool isOneProduct = !work.isGrouped;
  double rows = times * (isOneProduct ? double(work.m) * double(work.batch) : double(work.m));
  double count = isOneProduct ? 1 : double(work.batch);
  double n = double(work.n), k = double(work.k);
  double width = getBitSize(work.type) / 8.0, written = std::max(width, 2.0);
  double bytes = width * (rows * k + k * n) + written * rows * n;
  double roof = std::max(RateMath::divide(2 * rows * n * k, type.flops), RateMath::divide(bytes, rates->memory));
  const OpRatio &reached = type.getContraction(work);
  double ratio = reached.table ? interpolate(*reached.table, {}, {rows, n, k}) : getRatio(reached, defaultContraction);
  double ticks = count * ((roof + launchTicks) * ratio / type.getSustained(work).toDouble());
  double shape = 2 * count * rows * n * k;
  if (times * double(work.flops) > shape && shape > 0)
    ticks = ticks * (times * double(work.flops) / shape);
  if (isOneProduct && work.batch > 1)
    ticks = std::max(ticks, RateMath::divide(times * double(work.bytes), memory));
  return ticks + RateMath::divide(times * double(work.getAddedBytes()), memory);
}

double Machine::priceAttention(const Work &work, const TypeRates &type) const {
  double size = double(work.headSize) + double(work.valueSize);
  double elements = (double(work.heads) * double(work.rows) + double(work.keyHeads) * double(work.columns)) * size;
  double bytes = getBitSize(work.type) / 8.0 * elements;
  double roof =
      std::max(RateMath::divide(2 * double(work.pairs) * size, type.flops), RateMath::divide(bytes, rates->memory));
  double ratio = getRatio(type.attention, defaultAttention);
  if (const Grid *table = type.attention.table.get())
    ratio = interpolate(*table, {findNearest(table->axes[0], double(work.headSize))},
                        {double(work.columns), double(work.heads)});
  double ticks = (roof + launchTicks) * ratio;
  return work.isBackward ? ticks * rates->attentionBackward.toDouble() : ticks;
}

Ticks Machine::ofBeside(const Work &work) const {
  bool isPriced = work.besideBytes && isDeclared() && !work.isOnHost;
  return isPriced ? std::max(RateMath::divide(work.besideBytes, 1, 1, memory), rates->kernelLeast) : 0;
}

std::optional<Ticks> Machine::ofWork(const Work &work, llvm::StringRef &missing) const {
  if (!isDeclared() || work.isOnHost)
    return ofKernel(work, missing);
  if (work.isInside) // the host may wait for an op that is no kernel
    return Ticks(std::min<__int128>(__int128(ofBeside(work)) + work.host, maxTicks));
  std::optional<Ticks> kernel = ofKernel(work, missing);
  if (!kernel)
    return std::nullopt;
  Ticks alone = multiply(*kernel, *Rational::make(work.speed.den, work.speed.num));
  return Ticks(std::min<__int128>(__int128(alone) + ofBeside(work) + work.host, maxTicks));
}

std::optional<Ticks> Machine::ofKernel(const Work &work, llvm::StringRef &missing) const {
  if (!rates || rates->name.empty() || work.isOnHost)
    return ofCompute(work.flops, work.bytes, work.isOnHost, missing);
  if (work.kind == WorkKind::Elementwise) {
    Rate flops = rates->types[size_t(DType::F32)].flops; // a machine may leave them out, as memory decides
    Ticks ticks =
        std::max(RateMath::divide(work.bytes, 1, 1, memory), flops ? RateMath::divide(work.flops, 1, 1, flops) : 0);
    return work.floor < 0 ? std::max(ticks, rates->kernelLeast) : ticks + std::min(work.floor, maxTicks - ticks);
  }
  const TypeRates &type = getType(work);
  if (!type.flops) {
    missing = getFlopsEntry(findTypeIndex(work));
    return std::nullopt;
  }
  bool isProduct = work.kind == WorkKind::Contraction;
  if (std::optional<double> ticks =
          isProduct ? priceSmallContraction(work, type) : priceCachedAttention(work, getWideType(*rates, work, type)))
    return roundTicks(*ticks);
  return roundTicks(isProduct ? priceContraction(work, type)
                              : priceAttention(work, getAttentionType(*rates, work, type)));
}

bool Machine::isInsideTables(const Work &work) const {
  if (work.kind == WorkKind::Elementwise)
    return true;
  if (!rates || rates->name.empty() || work.isOnHost)
    return false;
  const TypeRates &type = getType(work);
  if (work.kind == WorkKind::Contraction) {
    const Grid *table = type.getContraction(work).table.get();
    double rows = double(work.m) * (work.isGrouped ? 1 : double(work.batch));
    return table && contains(*table, {rows, double(work.n), double(work.k)});
  }
  if (isOfServer(work))
    return false;
  const Grid *table = type.attention.table.get();
  auto has = [&](int64_t length) {
    return contains(*table, {double(work.headSize), double(length), double(work.heads)});
  };
  return table && has(work.rows) && has(work.columns);
}

bool Machine::isAssumed(const Work &work) const {
  if (!isDeclared() || work.isOnHost || work.kind != WorkKind::Contraction)
    return false;
  const OpRatio &ratio = getType(work).getContraction(work);
  return !ratio.isSaid() && !hasSmallRates(work);
}

Machine Machine::withContraction(const Rational &share) const {
  Machine machine = *this;
  if (machine.rates)
    for (TypeRates &type : machine.rates->types)
      if (!type.contraction.table && !type.contraction.share)
        type.contraction.share = share;
  return machine;
}
